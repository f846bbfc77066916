// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"

	profile "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// call is the kernel's struct seccomp_data.
type call struct {
	nr, arch uint32
	args     [6]uint64
}

func (c call) word(offset uint32) (uint32, error) {
	switch {
	case offset == 0:
		return c.nr, nil
	case offset == 4:
		return c.arch, nil
	case offset < 16 || offset >= 64 || offset%4 != 0:
		return 0, fmt.Errorf("load of offset %d", offset)
	}
	arg := c.args[(offset-16)/8]
	if offset%8 == 4 {
		arg >>= 32
	}
	return uint32(arg), nil
}

// execute runs a program as the kernel does, and counts its steps.
func execute(prog []byte, c call) (ret uint32, steps int, err error) {
	return interpret(prog, c.word)
}

// ahead runs a program as the kernel does when it is installed, to learn which calls it
// always allows (seccomp_is_const_allow): it gives up where an argument is looked at.
func ahead(prog []byte, nr, arch uint32) (uint32, error) {
	ret, _, err := interpret(prog, func(offset uint32) (uint32, error) {
		if offset >= 8 {
			return 0, fmt.Errorf("it looks at what stands at %d", offset)
		}
		return call{nr: nr, arch: arch}.word(offset)
	})
	return ret, err
}

func interpret(prog []byte, word func(offset uint32) (uint32, error)) (ret uint32, steps int, err error) {
	var acc uint32
	for pc := 0; ; pc++ {
		if pc*InstructionSize >= len(prog) {
			return 0, steps, fmt.Errorf("ran off the end at %d", pc)
		}
		in := prog[pc*InstructionSize:]
		code, jt, jf := binary.LittleEndian.Uint16(in), int(in[2]), int(in[3])
		k := binary.LittleEndian.Uint32(in[4:])
		steps++
		var hit bool
		switch code {
		case 0x20: // LD W ABS
			if acc, err = word(k); err != nil {
				return 0, steps, err
			}
			continue
		case 0x54: // ALU AND K
			acc &= k
			continue
		case 0x06: // RET K
			return k, steps, nil
		case 0x05: // JMP JA
			pc += int(k)
			continue
		case 0x15: // JMP JEQ K
			hit = acc == k
		case 0x25: // JMP JGT K
			hit = acc > k
		case 0x35: // JMP JGE K
			hit = acc >= k
		case 0x45: // JMP JSET K
			hit = acc&k != 0
		default:
			return 0, steps, fmt.Errorf("code %#x at %d", code, pc)
		}
		if hit {
			pc += jt
		} else {
			pc += jf
		}
	}
}

// reference decides a call from the lists, straightforwardly.
type reference struct {
	arch   arch
	list   map[uint32][]specs.LinuxSyscall // in the list's order
	strict map[uint32]rule
	last   uint32
}

func referenceOf(a arch, capabilities []string) reference {
	r := reference{arch: a, strict: strictRules(a), list: map[uint32][]specs.LinuxSyscall{}}
	numbers := map[string]uint32{}
	for _, n := range a.numbers {
		numbers[n.name] = n.nr
	}
	has := func(c string) bool { return slices.Contains(capabilities, c) }
	for _, s := range profile.DefaultProfile().Syscalls {
		for _, n := range s.Names {
			r.last = max(r.last, numbers[n])
		}
		in := true
		if f := s.Includes; f != nil {
			in = len(f.Arches) == 0 || slices.Contains(f.Arches, a.name)
			for _, c := range f.Caps {
				in = in && has(c)
			}
		}
		if f := s.Excludes; f != nil {
			in = in && !slices.Contains(f.Arches, a.name)
			for _, c := range f.Caps {
				in = in && !has(c)
			}
		}
		for _, n := range s.Names {
			if nr, ok := numbers[n]; ok && in {
				r.list[nr] = append(r.list[nr], s.LinuxSyscall)
			}
		}
	}
	return r
}

func (r reference) decide(c call) uint32 {
	if c.arch != r.arch.audit {
		return retKillProcess
	}
	if c.nr > r.last {
		return retErrno(enosys)
	}
	if s, ok := r.strict[c.nr]; ok {
		for {
			if len(s.clauses) == 0 || slices.ContainsFunc(s.clauses, func(cl clause) bool { return all(cl, c) }) {
				return s.pass
			}
			if s.otherwise == nil {
				return s.fail
			}
			s = *s.otherwise
		}
	}
	for _, s := range r.list[c.nr] {
		if slices.ContainsFunc(s.Args, func(a specs.LinuxSeccompArg) bool { return !matches(a, c) }) {
			continue
		}
		if s.Action == specs.ActAllow {
			return retAllow
		}
		return retErrno(uint32(*s.ErrnoRet))
	}
	return retErrno(eperm)
}

func matches(a specs.LinuxSeccompArg, c call) bool {
	v := c.args[a.Index]
	switch a.Op {
	case specs.OpEqualTo:
		return v == a.Value
	case specs.OpNotEqual:
		return v != a.Value
	case specs.OpLessThan:
		return v < a.Value
	case specs.OpLessEqual:
		return v <= a.Value
	case specs.OpGreaterThan:
		return v > a.Value
	case specs.OpGreaterEqual:
		return v >= a.Value
	case specs.OpMaskedEqual:
		return v&a.Value == a.ValueTwo
	}
	panic("unknown operator " + a.Op)
}

func all(cl clause, c call) bool {
	for _, one := range cl {
		if !one.holds(c) {
			return false
		}
	}
	return true
}

func (c condition) holds(s call) bool {
	v := s.args[c.arg] & c.mask
	switch c.op {
	case opEQ:
		return v == c.value
	case opNE:
		return v != c.value
	case opGT:
		return v > c.value
	case opGE:
		return v >= c.value
	case opLT:
		return v < c.value
	}
	return v <= c.value
}
