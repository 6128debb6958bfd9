"""The rows of the table, by what they do. Importing this fills it."""

from baracuda.torch.lowering import attention as attention
from baracuda.torch.lowering import elementwise as elementwise
from baracuda.torch.lowering import images as images
from baracuda.torch.lowering import indexing as indexing
from baracuda.torch.lowering import losses as losses
from baracuda.torch.lowering import makers as makers
from baracuda.torch.lowering import norms as norms
from baracuda.torch.lowering import products as products
from baracuda.torch.lowering import reductions as reductions
from baracuda.torch.lowering import views as views
from baracuda.torch.table import ROWS as ROWS
