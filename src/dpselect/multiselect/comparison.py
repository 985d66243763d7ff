"""The best noise on a ring beside Laplace noise: where their answers lie, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpselect.multiselect.ring import CIRCUMFERENCE, Ring, laplace_ring, optimal_ring


@dataclass(frozen=True)
class RingComparison:
    """Both noises on a ring, each with its best answers; made by `compare_rings`.

    Attributes
    ----------
    optimal, laplace
        The ring with the noise of the linear program, and that with Laplace noise.

    Examples
    --------
    >>> from dpselect.multiselect import compare_rings
    >>> compare_rings(1, epsilon=1.0, places=24).offsets("optimal")
    [0.0]
    """

    optimal: Ring
    laplace: Ring

    @property
    def rings(self) -> dict[str, Ring]:
        """The rings by the name of their noise."""
        return {"optimal": self.optimal, "laplace": self.laplace}

    def offsets(self, noise: str) -> list[float]:
        """Return the positions of the answers of a noise relative to the signal, from −half to half the ring."""
        ring = self.rings[noise]
        half = (ring.places - 1) // 2
        return sorted(((answer + half) % ring.places - half) * ring.step for answer in ring.answers)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        ring = self.optimal
        return {
            "k": ring.k,
            "epsilon": ring.epsilon,
            "circumference": ring.circumference,
            "places": ring.places,
            "disutility": ring.disutility.name,
            "noises": [
                {"noise": name, "offsets": self.offsets(name), "answers": list(own.answers), "cost": own.cost}
                for name, own in self.rings.items()
            ],
        }

    def plot(self, axes: Any = None) -> Any:
        """Draw both densities with their answers, and return the axes."""
        from dpselect.multiselect.picture import draw_rings

        return draw_rings(self, axes)

    def _repr_html_(self) -> str:
        from dpselect._show import table_html

        rows = [
            [name, ", ".join(f"{offset:.4g}" for offset in self.offsets(name)), f"{ring.cost:.4g}"]
            for name, ring in self.rings.items()
        ]
        title = f"{self.optimal.k} answers on a ring at epsilon = {self.optimal.epsilon:g}"
        return table_html(title, ["noise", "answers, from the signal", "expected cost"], rows)


def compare_rings(
    k: int, epsilon: float, *, circumference: float = CIRCUMFERENCE, places: int = 240, disutility: Any = "linear"
) -> RingComparison:
    """Return the best noise on a ring and Laplace noise, each with the k answers that cost least for it.

    Parameters
    ----------
    k, epsilon, circumference, places, disutility
        As in `optimal_ring`.

    Returns
    -------
    RingComparison

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import compare_rings
    >>> found = compare_rings(2, epsilon=0.375, places=60)
    >>> round(found.optimal.cost, 2), round(found.laplace.cost, 2)
    (0.71, 0.74)
    """
    settings: dict[str, Any] = {"circumference": circumference, "places": places, "disutility": disutility}
    return RingComparison(optimal_ring(k, epsilon, **settings), laplace_ring(k, epsilon, **settings))
