// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon is the wiring: it turns a [Config] into a running server. It is
// the only package that knows drivers, the store and the surfaces together, and
// it decides nothing else.
package daemon
