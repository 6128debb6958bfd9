"""PyTorch's door: `torch.compile(model, backend="baracuda")`.

Imported when it is asked for: by `import baracuda.torch`, or by torch, which finds the backend by its entry point.
"""

from torch._dynamo import register_backend

from baracuda.torch.backend import backend as backend
from baracuda.torch.report import Fallback as Fallback
from baracuda.torch.report import Report as Report
from baracuda.torch.report import report as report

register_backend(backend, name="baracuda")

__all__ = ["Fallback", "Report", "backend", "report"]
