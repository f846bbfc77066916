// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// MostCommandTime is the longest time limit that a command may have here.
func (e *Engine) MostCommandTime() time.Duration { return e.defaults.MaxCommandTimeout }
