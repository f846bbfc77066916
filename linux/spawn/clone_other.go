// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package spawn

import "golang.org/x/sys/unix"

// shares says whether children can share the server's memory on this processor.
const shares = false

func (p *plan) begin() (pid int, errno unix.Errno)  { return p.beginCopy() }
func (v *visit) begin() (pid int, errno unix.Errno) { return v.beginCopy() }

func park(args *cloneArgs, self uintptr, _ Method) (pid int, errno unix.Errno) {
	return parkCopy(args, self)
}
