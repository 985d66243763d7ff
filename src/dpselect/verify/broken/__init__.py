"""Mechanisms that are wrong on purpose: the checks must reject each one and accept its sound counterpart.

They are mistakes that are easily made in earnest. None of them can be reached from `select`; they exist to show
that the checks can fail.
"""

from dpselect.verify.broken.approximate import (
    ForgottenConversion,
    PermuteAndFlipAsRange,
    RoundsNotAdded,
    WrongSign,
)
from dpselect.verify.broken.base import Broken, Lipschitz
from dpselect.verify.broken.gamma import ShortGamma
from dpselect.verify.broken.gaussian import ClassicalSigma, ForgottenRoot
from dpselect.verify.broken.laws import (
    ForgottenFactorTwo,
    ForgottenK,
    HalvedNoise,
    LeakedNoisyOrder,
    LeakedOrder,
    ShownValue,
    SwappedExtremes,
)
from dpselect.verify.broken.ranking import (
    BrokenRanking,
    DenominatorFromTheData,
    ErrorNotAdded,
    PromiseNotKept,
    VotesNotCapped,
)
from dpselect.verify.broken.samplers import (
    FavouredMembers,
    ReusedNoise,
    SlightlyWrongScale,
    SortedSet,
    SwappedOrderStatistics,
)
from dpselect.verify.broken.signals import (
    BrokenSignals,
    FloatNoise,
    ForgottenMemory,
    PremiseForgotten,
    SameNoise,
    UnroundedPosition,
    WrongRatio,
    ZeroTwice,
)
from dpselect.verify.broken.subsets import (
    MarginOneRankTooFar,
    MarginOneRankTooNear,
    MiscountedClasses,
    NarrowJoint,
    SwappedLoss,
    UnnormalisedWeights,
)
from dpselect.verify.broken.unknown import (
    AtLeastForAbove,
    BrokenUnknown,
    DummyWithoutSpread,
    FreshThresholdNoise,
    GapOneRankTooFar,
    PoolFromTheData,
    ThresholdWithoutSpread,
    WalkByTrueScore,
)
from dpselect.verify.broken.vectors import EuclideanNoise, OneNoiseForAll, RowLeftOut, SwappedFeatures

__all__ = [
    "AtLeastForAbove",
    "Broken",
    "BrokenRanking",
    "BrokenSignals",
    "BrokenUnknown",
    "ClassicalSigma",
    "DenominatorFromTheData",
    "DummyWithoutSpread",
    "ErrorNotAdded",
    "EuclideanNoise",
    "FavouredMembers",
    "FloatNoise",
    "ForgottenConversion",
    "ForgottenFactorTwo",
    "ForgottenK",
    "ForgottenMemory",
    "ForgottenRoot",
    "FreshThresholdNoise",
    "GapOneRankTooFar",
    "HalvedNoise",
    "LeakedNoisyOrder",
    "LeakedOrder",
    "Lipschitz",
    "MarginOneRankTooFar",
    "MarginOneRankTooNear",
    "MiscountedClasses",
    "NarrowJoint",
    "OneNoiseForAll",
    "PermuteAndFlipAsRange",
    "PoolFromTheData",
    "PremiseForgotten",
    "PromiseNotKept",
    "ReusedNoise",
    "RoundsNotAdded",
    "RowLeftOut",
    "SameNoise",
    "ShortGamma",
    "ShownValue",
    "SlightlyWrongScale",
    "SortedSet",
    "SwappedExtremes",
    "SwappedFeatures",
    "SwappedLoss",
    "SwappedOrderStatistics",
    "ThresholdWithoutSpread",
    "UnnormalisedWeights",
    "UnroundedPosition",
    "VotesNotCapped",
    "WalkByTrueScore",
    "WrongRatio",
    "WrongSign",
    "ZeroTwice",
]
