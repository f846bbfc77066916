// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"runtime"
	"sync"
	"testing"
)

func TestASecondProcessorIsUsedWhileSomebodyNeedsIt(t *testing.T) {
	want := min(2, runtime.NumCPU())
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	var s spread
	var all sync.WaitGroup
	begun, end := make(chan int, 8), make(chan struct{})
	for range 8 {
		all.Go(func() {
			s.begin()
			begun <- runtime.GOMAXPROCS(0)
			<-end
			s.end()
		})
	}
	for range 8 {
		if n := <-begun; n != want {
			t.Errorf("%d processors", n)
		}
	}
	close(end)
	all.Wait()
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d processors when all have ended", n)
	}
	runtime.GOMAXPROCS(3) // what has more keeps it
	s.begin()
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("%d processors of 3", n)
	}
	s.end()
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("%d processors of 3 after the end", n)
	}
}
