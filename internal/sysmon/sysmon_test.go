// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sysmon_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/internal/sysmon"
)

func TestCalmSlowsOneThreadAndNotTheFirst(t *testing.T) {
	skiptest.WithoutRoot(t, "it reads the timer slack of its threads")
	slow := func() (tids []string) {
		t.Helper()
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			slack, err := os.ReadFile("/proc/" + task.Name() + "/timerslack_ns")
			if err == nil && strings.TrimSpace(string(slack)) == "500000" {
				tids = append(tids, task.Name())
			}
		}
		return tids
	}
	if got := slow(); got != nil {
		t.Fatalf("before: %v", got)
	}
	sysmon.Calm()
	if got := slow(); len(got) != 1 || got[0] == strconv.Itoa(os.Getpid()) {
		t.Errorf("after: %v of the process %d", got, os.Getpid())
	}
}
