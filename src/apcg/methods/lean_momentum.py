"""stub"""
class Momentum:
    FEWEST = 20
