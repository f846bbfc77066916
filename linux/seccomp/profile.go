// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"

	profile "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// oldestKernel is the oldest kernel that sandpit runs on. Docker's list widens
// with the kernel (ptrace since 4.8, when seccomp came to look at a call after
// the tracer had changed it), and all that it asks for is below this.
var oldestKernel = profile.KernelVersion{Kernel: 5, Major: 4}

// policy is the whole decision, before it is a program.
type policy struct {
	audit uint32
	rules map[uint32]rule
	// other decides the numbers up to ceiling that no rule names.
	other uint32
	// ceiling is the highest number that Docker's list names. What is above it
	// is younger than the list, and gets ENOSYS.
	ceiling uint32
}

// policyOf evaluates Docker's list for an architecture and a set of
// capabilities, and puts the strict rules on top.
func policyOf(a arch, capabilities []string) (policy, error) {
	list := profile.DefaultProfile()
	if list.DefaultAction != specs.ActErrno || list.DefaultErrnoRet == nil {
		return policy{}, fmt.Errorf("the list's default action is %s, want an errno", list.DefaultAction)
	}
	p := policy{audit: a.audit, rules: map[uint32]rule{}, other: retErrno(uint32(*list.DefaultErrnoRet))}
	for _, s := range list.Syscalls {
		// The ceiling does not depend on capabilities: a call that is known
		// and refused is EPERM, not "unknown".
		for _, name := range s.Names {
			if nr, ok := a.lookup(name); ok {
				p.ceiling = max(p.ceiling, nr)
			}
		}
		if !applies(s, a.name, capabilities) {
			continue
		}
		if err := p.add(a, s.LinuxSyscall); err != nil {
			return policy{}, err
		}
	}
	for nr, r := range strictRules(a) {
		if nr <= p.ceiling { // above it everything is refused already
			p.rules[nr] = r
		}
	}
	return p, nil
}

// tell has a call handed over that is allowed.
func (p *policy) tell(a arch, name string) error {
	nr, ok := a.lookup(name)
	if r, allowed := p.rules[nr]; !ok || !allowed || len(r.clauses) != 0 || r.pass != retAllow {
		return fmt.Errorf("the call %q cannot be handed over: want one that the list allows without conditions", name)
	}
	p.rules[nr] = always(retUserNotif)
	return nil
}

// applies tells whether a rule of the list is for this host.
func applies(s *profile.Syscall, arch string, capabilities []string) bool {
	if f := s.Excludes; f != nil {
		if slices.Contains(f.Arches, arch) ||
			slices.ContainsFunc(f.Caps, func(c string) bool { return slices.Contains(capabilities, c) }) ||
			f.MinKernel != nil && !older(oldestKernel, *f.MinKernel) {
			return false
		}
	}
	if f := s.Includes; f != nil {
		if len(f.Arches) > 0 && !slices.Contains(f.Arches, arch) ||
			slices.ContainsFunc(f.Caps, func(c string) bool { return !slices.Contains(capabilities, c) }) ||
			f.MinKernel != nil && older(oldestKernel, *f.MinKernel) {
			return false
		}
	}
	return true
}

func older(a, b profile.KernelVersion) bool {
	return a.Kernel < b.Kernel || a.Kernel == b.Kernel && a.Major < b.Major
}

// add merges one rule of the list. Several rules for one call are
// alternatives, and one without conditions outweighs the others, as in
// libseccomp. Two that would do different things are an error: the list has
// none, and which should win is not ours to guess.
func (p *policy) add(a arch, s specs.LinuxSyscall) error {
	var pass uint32
	switch {
	case s.Action == specs.ActAllow:
		pass = retAllow
	case s.Action == specs.ActErrno && s.ErrnoRet != nil:
		pass = retErrno(uint32(*s.ErrnoRet))
	default:
		return fmt.Errorf("%v: cannot compile the action %s", s.Names, s.Action)
	}
	var c clause
	for _, arg := range s.Args {
		one, err := conditionOf(arg)
		if err != nil {
			return fmt.Errorf("%v: %w", s.Names, err)
		}
		c = append(c, one)
	}
	for _, name := range s.Names {
		nr, ok := a.lookup(name)
		if !ok {
			continue
		}
		old, ok := p.rules[nr]
		r := rule{pass: pass, fail: p.other}
		switch {
		case ok && old.pass != pass:
			return fmt.Errorf("%s: the list both allows and refuses it", name)
		case ok && old.clauses == nil, c == nil:
			// Unconditional.
		default:
			r.clauses = append(slices.Clone(old.clauses), c)
		}
		p.rules[nr] = r
	}
	return nil
}
