// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"
)

var longAgo = time.Unix(1, 0)

// After so many calls, and so long without one, memory is given back to the kernel.
const (
	memoryBurst = 64
	memoryQuiet = 3 * time.Second
)
