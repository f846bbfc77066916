// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"
)

// Values of the kernel's AUDIT_ARCH_*: ELF machine | 64-bit | little endian.
const (
	auditArchAMD64 = 0xc000003e
	auditArchARM64 = 0xc00000b7
)

type number struct {
	name string
	nr   uint32
}

// arch is what the compiler needs to know of a processor architecture. Both
// that we know are little endian, which is what lays out the halves of an
// argument in condition.go.
type arch struct {
	name    string // as GOARCH and as Docker's profile spell it
	audit   uint32
	numbers []number
}

func archOf(goarch string) (arch, error) {
	switch goarch {
	case "amd64":
		return arch{goarch, auditArchAMD64, amd64Numbers}, nil
	case "arm64":
		return arch{goarch, auditArchARM64, arm64Numbers}, nil
	}
	return arch{}, fmt.Errorf("no system call table for %q: want amd64 or arm64", goarch)
}

// lookup gives the number of a system call. Docker's list names the calls of
// all architectures together, so a name without a number is no mistake.
func (a arch) lookup(name string) (uint32, bool) {
	i := slices.IndexFunc(a.numbers, func(n number) bool { return n.name == name })
	if i < 0 {
		return 0, false
	}
	return a.numbers[i].nr, true
}
