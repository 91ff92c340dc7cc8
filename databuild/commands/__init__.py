"""The commands, a module each: parse, call, print. Nothing slow is imported before its use.

They register in the order of the help.
"""

# isort: off
from databuild.commands import fixed
from databuild.commands import verify
from databuild.commands import inspect
from databuild.commands import report
from databuild.commands import diff
from databuild.commands import export
from databuild.commands import card
from databuild.commands import push
from databuild.commands import encode
from databuild.commands import manifest
from databuild.commands import doctor

__all__ = ["card", "diff", "doctor", "encode", "export", "fixed", "inspect", "manifest", "push", "report", "verify"]
