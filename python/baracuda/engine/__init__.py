"""Engines: functions whose memory is counted and limited, on one device, with arenas, pools and other systems' names."""

from baracuda._core import MemoryTracker as MemoryTracker
from baracuda.engine.engine import Alive as Alive
from baracuda.engine.engine import Engine as Engine
from baracuda.engine.engine import EngineStats as EngineStats
from baracuda.engine.memory import TensorArena as TensorArena
from baracuda.engine.memory import TensorPool as TensorPool
