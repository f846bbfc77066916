// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Role is what a process is to the one that is watched. A process that executes a
// program while it is Started or Launched has the next role from then on, and what it
// starts the one after that; all that is further down is Below.
type Role int

const (
	Root     Role = iota // the watched process itself
	Started              // what it started, before it executes a program
	Program              // the programs
	Launched             // what a Program started, before it executes one
	Below                // all further down
	roles
)

func (r Role) String() string {
	return [...]string{"root", "started", "program", "launched", "below"}[r]
}

const (
	widthBits = 9 // of a system call's number
	width     = 1 << widthBits
	births    = width - 2 // new processes are counted at this number, which is not a call's

	maxThreads = 16384 // that are there at a time; those beyond are not counted
)

// Counts are numbers of system calls, by role and by the kernel's number of the call. The
// last place counts numbers beyond, the one before new processes, threads not among them, by the
// role that they begin in.
type Counts [roles][width]uint64

// Since returns what came since an earlier reading.
func (c *Counts) Since(earlier *Counts) *Counts {
	d := new(Counts)
	for r := range c {
		for n := range c[r] {
			d[r][n] = c[r][n] - earlier[r][n]
		}
	}
	return d
}

// Total is that of all system calls of some roles.
func (c *Counts) Total(of ...Role) uint64 {
	var sum uint64
	for _, r := range of {
		for n, count := range c[r] {
			if n != births {
				sum += count
			}
		}
	}
	return sum
}

// Births is how many processes began in some roles.
func (c *Counts) Births(of ...Role) uint64 {
	var sum uint64
	for _, r := range of {
		sum += c[r][births]
	}
	return sum
}

// Of is that of some system calls, by name, over some roles. A name that this machine's kernel
// does not have counts nothing.
func (c *Counts) Of(names []string, of ...Role) uint64 {
	var sum uint64
	for _, r := range of {
		for n, count := range c[r] {
			if count == 0 {
				continue
			}
			own := Name(n)
			for _, name := range names {
				if own == name {
					sum += count
				}
			}
		}
	}
	return sum
}

// Counter counts until it is closed.
type Counter struct {
	counts []byte // shared with the kernel
	fds    []int
}

var order = binary.NativeEndian

// Unsupported reports whether an error of Watch means that the host cannot do it, or not for
// us; any other is a fault.
func Unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT)
}

// Watch begins to count the system calls of a process, all its threads included, and of
// what it starts from now on. An error says what the host lacks.
func Watch(pid int) (_ *Counter, err error) {
	if err := firstPIDs(); err != nil {
		return nil, err
	}
	c := &Counter{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	threads, err := c.newMap(mapTypeHash, entrySize, maxThreads, 0)
	if err != nil {
		return nil, fmt.Errorf("the kernel makes no map (it needs CONFIG_BPF_SYSCALL, and we root): %w", err)
	}
	size := int(roles) * width
	counts, err := c.newMap(mapTypeArray, 8, size, mapMappable)
	if err != nil {
		return nil, fmt.Errorf("the kernel makes no map: %w", err)
	}
	if c.counts, err = unix.Mmap(counts, 0, size*8, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("the kernel shares no map: %w", err)
	}
	forks, err := findTracepoint("sched", "sched_process_fork", "child_pid")
	if err != nil {
		return nil, err
	}
	// A process that begins to be counted must also be forgotten, and be known before it is
	// counted.
	for _, part := range []struct {
		name string
		code []insn
	}{
		{"sched_process_exit", exiting(threads)},
		{"sched_process_exec", executing(threads)},
		{"", forking(threads, int32(pid), forks.offset)},
		{"sys_enter", entering(threads, counts, int32(pid))},
	} {
		if part.name == "" {
			err = c.attachTracepoint(forks.id, part.code)
		} else {
			err = c.attachRaw(part.name, part.code)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// firstPIDs reports whether our numbers of processes are the kernel's own, by which it counts.
func firstPIDs() error {
	const first = "pid:[4026531836]" // PROC_PID_INIT_INO of the kernel's proc_ns.h
	ours, err := os.Readlink("/proc/self/ns/pid")
	if err == nil && ours != first {
		err = fmt.Errorf("we are in a pid namespace of our own, %s, and the kernel counts by the numbers of the first: %w", ours, errors.ErrUnsupported)
	}
	return err
}

// Read returns the counts since Watch. It must not be called after Close.
func (c *Counter) Read() *Counts {
	out := new(Counts)
	for i := range int(roles) * width {
		out[i/width][i%width] = atomic.LoadUint64((*uint64)(unsafe.Pointer(&c.counts[i*8])))
	}
	return out
}

// Close ends the counting. Calling it twice is fine.
func (c *Counter) Close() error {
	var errs []error
	for _, fd := range c.fds {
		errs = append(errs, unix.Close(fd))
	}
	c.fds = nil
	if c.counts != nil {
		errs = append(errs, unix.Munmap(c.counts))
		c.counts = nil
	}
	return errors.Join(errs...)
}

func (c *Counter) newMap(kind, value, entries, flags int) (int, error) {
	var attr [72]byte
	order.PutUint32(attr[0:], uint32(kind))
	order.PutUint32(attr[4:], 4) // bytes of a key
	order.PutUint32(attr[8:], uint32(value))
	order.PutUint32(attr[12:], uint32(entries))
	order.PutUint32(attr[16:], uint32(flags))
	fd, err := bpf(mapCreate, attr[:])
	if err == nil {
		c.fds = append(c.fds, fd)
	}
	return fd, err
}

func (c *Counter) load(kind int, code []insn) (int, error) {
	license := []byte("Apache\x00")
	var attr [120]byte
	order.PutUint32(attr[0:], uint32(kind))
	order.PutUint32(attr[4:], uint32(len(code)))
	order.PutUint64(attr[8:], uint64(uintptr(unsafe.Pointer(&code[0]))))
	order.PutUint64(attr[16:], uint64(address(license)))
	fd, err := bpf(progLoad, attr[:])
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	if err != nil {
		return -1, fmt.Errorf("the kernel refuses a program: %w", err)
	}
	c.fds = append(c.fds, fd)
	return fd, nil
}

func (c *Counter) attachRaw(name string, code []insn) error {
	program, err := c.load(progTypeRawTracepoint, code)
	if err != nil {
		return err
	}
	text := []byte(name + "\x00")
	var attr [16]byte
	order.PutUint64(attr[0:], uint64(address(text)))
	order.PutUint32(attr[8:], uint32(program))
	fd, err := bpf(rawTracepointOpen, attr[:])
	runtime.KeepAlive(text)
	if err != nil {
		return fmt.Errorf("the kernel's tracepoint %s takes no program: %w", name, err)
	}
	c.fds = append(c.fds, fd)
	return nil
}

func (c *Counter) attachTracepoint(id uint64, code []insn) error {
	program, err := c.load(progTypeTracepoint, code)
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("the kernel opens no event for a tracepoint: %w", err)
	}
	c.fds = append(c.fds, fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program); err != nil {
		return fmt.Errorf("the kernel's tracepoint takes no program: %w", err)
	}
	return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
