// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"regexp"
	"runtime"
)

// Options select the parts of the list.
type Options struct {
	// Capabilities are the commands' bounding set, as "CAP_CHOWN". The list
	// allows more calls to those who hold more (chroot, for one); the strict
	// rules do not.
	Capabilities []string
	// Told are calls, as "sysinfo", that are handed over to who listens (see install.Listen) where the
	// list allows them whatever their arguments are.
	Told []string
	// Arch is "amd64" or "arm64"; "" is the one this program runs on.
	Arch string
}

var capabilityName = regexp.MustCompile(`^CAP_[A-Z_]{1,32}$`)

// Filter compiles the filter of a sandbox's commands. The result is an array of
// the kernel's struct sock_filter in its byte order, which is little endian on
// both architectures, at most 4096 of them, each [InstructionSize] bytes; what
// to do with it is in the sub-package install. Equal options give equal bytes.
//
// What the program decides:
//
//   - another architecture's calls (32-bit programs on a 64-bit kernel) kill the
//     process: they are not what the list describes
//   - calls that the list and the strict rules allow, pass
//   - calls the list was written to refuse, or that have no number: EPERM
//   - calls younger than the list, that is, above the highest number in it:
//     ENOSYS, since libraries take it as "this kernel is older" and fall back,
//     where EPERM looks final to them. libseccomp alone would say EPERM; runc,
//     which is what Docker users know, adds the same ENOSYS
//   - x32 calls (amd64 numbers from 1<<30 on): ENOSYS, by the same comparison.
//     Docker lets them in; hardly a kernel has them switched on, and ENOSYS is
//     what those that do not say
//
// It takes about a millisecond: compile once and keep the bytes.
func Filter(o Options) ([]byte, error) {
	if o.Arch == "" {
		o.Arch = runtime.GOARCH
	}
	a, err := archOf(o.Arch)
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	for _, c := range o.Capabilities {
		if !capabilityName.MatchString(c) {
			return nil, fmt.Errorf("seccomp: capability %q: want a name such as CAP_CHOWN", c)
		}
	}
	p, err := policyOf(a, o.Capabilities)
	if err != nil {
		return nil, fmt.Errorf("seccomp: the system call list: %w", err)
	}
	for _, name := range o.Told {
		if err := p.tell(a, name); err != nil {
			return nil, fmt.Errorf("seccomp: %w", err)
		}
	}
	prog, err := compile(p)
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	return prog, nil
}
