"""stub"""
class APCGClassifierCV: pass
class APCGRegressorCV: pass
