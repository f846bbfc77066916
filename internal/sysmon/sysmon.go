// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sysmon calms the monitor of Go's runtime.
package sysmon

import (
	"os"
	"slices"
	"strconv"
)

// Calm slows the one thread of Go's runtime that sleeps 20 µs at a time
// while the program works, down to a turn each half a millisecond. Each turn
// preempts whatever runs on its processor, this program or another, for 15 µs: a
// sixth of the machine's time where timers are dear, as in virtual machines.
// What sysmon is for (taking over from blocked system calls, preemption after
// 10 ms) happens at most that much later.
//
// The kernel may end a sleep late by the thread's timer slack, which is 50 µs by
// default. The thread is the first that the runtime starts. Where it cannot be
// found or set nothing is lost but time.
func Calm() {
	const slack = "500000" // ns
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	var tids []int
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil && tid != os.Getpid() {
			tids = append(tids, tid)
		}
	}
	if len(tids) > 0 {
		_ = os.WriteFile("/proc/"+strconv.Itoa(slices.Min(tids))+"/timerslack_ns", []byte(slack), 0)
	}
}
