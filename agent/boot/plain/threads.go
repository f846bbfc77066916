// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"runtime"
	"sync"
)

// maxThreads bounds Config.Threads.
const maxThreads = 1024

// makeThreads has Go's runtime make n threads, which it keeps for later use.
func makeThreads(n int) {
	var ready, over sync.WaitGroup
	release := make(chan struct{})
	ready.Add(n)
	for range n {
		over.Go(func() {
			runtime.LockOSThread() // nobody else runs on it meanwhile
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	close(release)
	over.Wait()
}
