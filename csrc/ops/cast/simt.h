// Element conversion on GPUs: the elementwise driver's own loads and stores, with nothing between them.
#pragma once
#include "simt/map.h"
