// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package runtimetest is the suite that every driver passes.
//
// It looks at a sandbox only from inside, through the real agent, and knows
// nothing of how a driver isolates. A test is skipped only where Probe answered
// that the host cannot do it; what a driver must be able to do on a host that
// is fit is named in Harness.Must, so that a probe that breaks cannot turn
// tests into skips. Opening the driver again over the same instances is a
// restart of the server.
package runtimetest
