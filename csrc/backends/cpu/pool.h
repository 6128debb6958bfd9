// Threads of our own, for systems that have no libgomp to share.
#pragma once

namespace baracuda {

// Calls fn(data) on `threads` threads, of which the caller is one, and returns when all have returned; on fewer where
// the system gives no more. One caller at a time, and never in a forked child. The threads stay until the process ends.
void pool_parallel(void (*fn)(void*), void* data, unsigned threads, unsigned flags);

// Which of them the calling thread is: 0 for a caller.
int pool_thread_num();

}  // namespace baracuda
