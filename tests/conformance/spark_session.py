"""A Spark of the tests' own: one JVM, classic and Connect, with settings nobody would expect.

`python -m tests.conformance.spark_session` finds Java or installs it, and prints where it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

from tests import debian_packages

PACKAGES = ("openjdk-17-jre-headless",)
ABSENT = (
    "no Java was found: install it (Debian: apt-get install openjdk-17-jre-headless), or say where it is:"
    " JAVA_HOME=/path"
)
_PLACES = ("/usr/lib/jvm/*17*/bin/java", "/usr/lib/jvm/*/bin/java")
# What an answer must not depend on. Users' sessions have these settings; ours are pinned by the package.
SETTINGS = {
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}
# A JVM that starts soon, keeps its work in a folder of its own, and speaks to this machine alone.
_LAUNCH = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "3g",
    # What it remembers of statements that are done: one JVM is asked thousands of them.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Tables of tests are small: code for a statement takes longer to make than the statement takes.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


def find() -> Path | None:
    """Return the folder of a Java, None if there is none."""
    named = os.environ.get("JAVA_HOME")
    if named:
        return Path(named) if (Path(named) / "bin" / "java").exists() else None
    found = [one for pattern in _PLACES for one in sorted(Path("/").glob(pattern[1:]))]
    on_path = shutil.which("java")
    return found[0].parents[1] if found else Path(on_path).resolve().parents[1] if on_path else None


def find_or_install() -> Path | None:
    """Return the folder of a Java, which is installed where it may be."""
    return debian_packages.find_or_install(find, "JAVA_HOME", *PACKAGES)


class Spark:
    """A Spark that is running: `session` is classic, `remote()` a session of Connect with the same JVM."""

    def __init__(self, java: Path, **settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sfumato-spark-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        os.environ.update(JAVA_HOME=str(java), SPARK_LOCAL_IP="127.0.0.1")
        # Read by the JVM before any setting: nothing is written to the screen, not even while it starts.
        (folder / "log4j2.properties").write_text("rootLogger.level = off\n")
        options = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'} -Dderby.system.home={folder}"
        launch = {**_LAUNCH, **SETTINGS, **settings}
        launch["spark.driver.extraJavaOptions"] += f" {options}"
        launch["spark.sql.warehouse.dir"] = str(folder / "warehouse")
        launch["spark.local.dir"] = str(folder / "local")
        self._remote: Any = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyspark warns of pandas
            from pyspark import SparkConf, SparkContext
            from pyspark.java_gateway import launch_gateway
            from pyspark.sql import SparkSession
            from pyspark.sql.connect.session import SparkSession as RemoteSession

            self._of_address = RemoteSession
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            gateway = launch_gateway(conf=SparkConf(False).setAll(launch.items()), popen_kwargs=quiet)
            self.context = SparkContext(gateway=gateway)
            self.session: Any = SparkSession(self.context)

    @property
    def address(self) -> str:
        """Where Connect listens."""
        name = "org.apache.spark.sql.connect.service.SparkConnectService$"
        service = self.context._jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
        return f"sc://127.0.0.1:{service.server().getPort()}"

    def remote(self) -> Any:
        """Return a session of Connect, the same each time."""
        if self._remote is None:
            self._remote = self._of_address(connection=self.address)
        return self._remote

    def forget(self) -> None:
        """Let go of a JVM that was killed, so that another can be started."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        SparkContext._gateway.proc.stdin.close()
        SparkContext._gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        self._folder.cleanup()

    def __enter__(self) -> Spark:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from pyspark import SparkContext

        if self._remote is not None:
            self._remote.client.close()
        gateway, process = SparkContext._gateway, SparkContext._gateway.proc
        self.context.stop()
        gateway.shutdown()
        process.stdin.close()
        process.wait(60)
        SparkContext._gateway = SparkContext._jvm = None
        self._folder.cleanup()


if __name__ == "__main__":
    debian_packages.tell(find_or_install(), ABSENT, "ask Spark")
