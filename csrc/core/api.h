// Visibility of the Python-free engine library: everything is hidden except what carries BCU_API.
#pragma once

#define BCU_API __attribute__((visibility("default")))
