"""The HTTP service of multi-selection: it receives noisy signals and returns results, and never sees a position.

* `Offer(catalogue)`: results on a line with their public settings; `coast()` is a generated example
* `RingOffer(catalogue, circumference=24)`, `VectorOffer(vectors)`: results on a ring, and with feature vectors
* `create_app({"name": offer})`: the application, for any ASGI server; `run` serves it
* `RemoteServer(url, catalogue)`: the service as seen by a Python client
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpselect._lazy import loader

if TYPE_CHECKING:
    from dpselect.service.app import Guard as Guard
    from dpselect.service.app import create_app as create_app
    from dpselect.service.kinds import RingOffer as RingOffer
    from dpselect.service.kinds import VectorOffer as VectorOffer
    from dpselect.service.offer import Offer as Offer
    from dpselect.service.offer import coast as coast
    from dpselect.service.remote import RemoteServer as RemoteServer
    from dpselect.service.serve import listening_socket as listening_socket
    from dpselect.service.serve import page_address as page_address
    from dpselect.service.serve import run as run
    from dpselect.service.serve import server_settings as server_settings

_MODULES = {
    "Guard": "app",
    "Offer": "offer",
    "RemoteServer": "remote",
    "RingOffer": "kinds",
    "VectorOffer": "kinds",
    "coast": "offer",
    "create_app": "app",
    "listening_socket": "serve",
    "page_address": "serve",
    "run": "serve",
    "server_settings": "serve",
}

__all__ = [
    "Guard",
    "Offer",
    "RemoteServer",
    "RingOffer",
    "VectorOffer",
    "coast",
    "create_app",
    "listening_socket",
    "page_address",
    "run",
    "server_settings",
]


__getattr__ = loader(__name__, _MODULES, "the service", "serve")
