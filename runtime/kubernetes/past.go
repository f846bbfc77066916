// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strconv"
	"sync"
	"time"
)

// past detects lists that are older than objects already seen, as from an API server that lags behind another.
type past struct {
	mu     sync.Mutex
	newest uint64    // version of what the cluster told
	since  time.Time // when a list was older first; zero: the last was not
}

// pastAtMost is how long lists are taken for old ones: versions go back, too, when a cluster's store is restored.
const pastAtMost = time.Minute

// versionOf returns a version of the API's objects as a number, as which they can be compared; 0: it is none.
func versionOf(text string) uint64 {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// saw takes the version of an object that the cluster told of.
func (p *past) saw(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = max(p.newest, versionOf(version))
}

// isOld reports whether a list of a version is older than what is known.
func (p *past) isOld(version string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := versionOf(version)
	switch {
	case v == 0:
		return false
	case v >= p.newest:
	case p.since.IsZero():
		p.since = now
		return true
	case now.Sub(p.since) < pastAtMost:
		return true
	}
	p.newest, p.since = v, time.Time{}
	return false
}
