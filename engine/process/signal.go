// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// ParseSignal reads a signal's name (SIGTERM, term) or number.
func ParseSignal(s string) (syscall.Signal, error) {
	const most = 64
	if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= most {
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(s)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if sig := unix.SignalNum(name); sig != 0 {
		return sig, nil
	}
	return 0, fault.InvalidField("signal", "%q is not a valid signal; use a name such as SIGTERM, or 1 to %d", sandbox.Clip(s, 40), most)
}
