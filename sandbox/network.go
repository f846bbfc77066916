// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

// NetworkMode says what a sandbox may reach.
type NetworkMode string

// NetworkOff is the only mode so far: loopback and nothing else.
const NetworkOff NetworkMode = "off"
