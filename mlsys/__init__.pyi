from mlsys import claims as claims
from mlsys import constants as constants
from mlsys import formulas as formulas
from mlsys import hardware as hardware
from mlsys import mapping as mapping
from mlsys import models as models
from mlsys import viz as viz
from mlsys import widgets as widgets
from mlsys import workloads as workloads
from mlsys.claims import claim as claim
from mlsys.claims import claims_table as claims_table
from mlsys.claims import given as given
from mlsys.formatting import check as check
from mlsys.formatting import fmt as fmt
from mlsys.formatting import fmt_percent as fmt_percent
from mlsys.hardware import Hardware as Hardware
from mlsys.units import Q_ as Q_
from mlsys.units import Quantity as Quantity
from mlsys.units import ureg as ureg

__version__: str
