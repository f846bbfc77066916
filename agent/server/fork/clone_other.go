// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package fork

// clone is written for amd64 only.
func (c *Command) clone() (pid, pidfd int, err error) { return 0, -1, errRefused }

// MayBeAlone is that commands can be [Command].Alone on this processor.
const MayBeAlone = false
