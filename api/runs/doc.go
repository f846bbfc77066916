// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package runs is what runs look like to clients, whichever coat they come through:
// their shape, their events as a stream, and their artifacts at /artifacts. It decides
// nothing; the engine does, and checks every caller's rights.
package runs
