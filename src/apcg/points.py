"""The records that a method and a certificate exchange; they live in `apcg.certify.points`."""

from .certify.points import Certificate, Point, Start

__all__ = ["Certificate", "Point", "Start"]
