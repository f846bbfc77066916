// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package bench

// cpuidCost is nothing: other processors have no such instruction.
func cpuidCost() float64 { return 0 }
