// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"math/bits"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/seccomp/install"
)

// answer answers the calls that the filter of l hands over, as long as its thread lives, with the
// sandbox's limits in place of the host's. Programs ask so how many threads to start and how much
// memory to take; no file lies over a call.
//
// Commands are bound to no processor: the host spreads them over all of its own, which no choice of
// ours does as well, and the limit of processor time holds.
func (t *facts) answer(l *install.Listener) {
	var due time.Time
	for {
		c, err := l.Receive()
		if err != nil {
			_ = l.Close() // the calls fail then, as on a kernel without them; nobody is left to make one
			return
		}
		if !t.answerOne(l, c) {
			_ = l.Continue(c) // the kernel says what is wrong with it
		}
		// The time is the agent's and none of the commands' limit: who asks again and again waits.
		now := time.Now()
		if due = later(due, now.Add(-answersAtOnce*answersEvery)).Add(answersEvery); due.Sub(now) > answersPause {
			time.Sleep(answersPause)
		}
	}
}

// A call takes about 20 µs of the agent's time, so that these are a fiftieth of a processor.
const (
	answersEvery  = time.Millisecond
	answersAtOnce = 1000 // after a time without
	answersPause  = 20 * time.Millisecond
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// answerOne reports whether it did; else the kernel does.
func (t *facts) answerOne(l *install.Listener, c install.Call) bool {
	var out []byte
	var at uint64
	value := 0
	switch c.Number {
	case unix.SYS_SYSINFO:
		info := t.sysinfo()
		at, out = c.Args[0], unsafe.Slice((*byte)(unsafe.Pointer(&info)), unsafe.Sizeof(info))
	case unix.SYS_SCHED_GETAFFINITY:
		thread := int(int32(c.Args[0]))
		if thread == 0 {
			thread = c.Thread
		}
		var set unix.CPUSet
		if thread < 0 || unix.SchedGetaffinity(thread, &set) != nil {
			return false
		}
		shown, ok := t.processorsOf(&set)
		// As much as the kernel writes, which is what a program gave room for.
		room := uint32(c.Args[1])
		size := min(room, uint32(unsafe.Sizeof(shown)), uint32(t.setBytes))
		if !ok || room%8 != 0 || int(size)*8 < t.possible {
			return false
		}
		at, out, value = c.Args[2], unsafe.Slice((*byte)(unsafe.Pointer(&shown)), size), int(size)
	default:
		return false
	}
	memory, err := l.Memory(c)
	if err != nil {
		return false
	}
	defer func() { _ = memory.Close() }()
	if int64(at) < 0 {
		return false // no address of a program's
	}
	if _, err := memory.WriteAt(out, int64(at)); err != nil {
		return false
	}
	_ = l.Return(c, value, 0)
	return true
}

// processorsOf returns those of a thread's processors that the sandbox's limit comes to, and reports
// whether they are fewer. Which they are differs from sandbox to sandbox, lest programs that pin
// their threads to the first that they see meet on it.
func (t *facts) processorsOf(set *unix.CPUSet) (shown unix.CPUSet, fewer bool) {
	want, have := t.count(), set.Count()
	if want >= have {
		return *set, false
	}
	skip := int(t.first % uint32(have))
	for taken := 0; taken < want; {
		for cpu := 0; cpu < bits.UintSize*len(set) && taken < want; cpu++ {
			if !set.IsSet(cpu) {
				continue
			}
			if skip > 0 {
				skip--
				continue
			}
			shown.Set(cpu)
			taken++
		}
	}
	return shown, true
}

// sysinfo is sysinfo(2) of the sandbox.
func (t *facts) sysinfo() unix.Sysinfo_t {
	t.refresh()
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info) // it fails for a bad address alone
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.memory
	info.Unit = 1
	info.Totalram, info.Freeram, info.Sharedram, info.Bufferram = m.total, m.free, m.shared, 0
	info.Totalswap, info.Freeswap, info.Totalhigh, info.Freehigh = 0, 0, 0, 0
	info.Procs = uint16(min(number(t.gauges.Tasks), 1<<16-1))
	const one = 1 << 16 // SI_LOAD_SHIFT
	for i, load := range t.load {
		info.Loads[i] = uint64(load * one)
	}
	return info
}
