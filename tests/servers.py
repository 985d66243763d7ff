"""Real engines to test with: a PostgreSQL server and a local Spark, each started once and stopped at the end."""

from dpselect.verify.servers import BRIEF_JAVA, postgresql, spark

__all__ = ["BRIEF_JAVA", "postgresql", "spark"]
