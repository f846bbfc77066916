// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

// tracepoint is a tracepoint of the kernel, and the position of one field in its record.
type tracepoint struct {
	id     uint64
	offset int16
}

// findTracepoint reads the kernel's own description, in a private tracefs: the host may have
// mounted none.
func findTracepoint(group, name, field string) (tracepoint, error) {
	failed := func(err error) (tracepoint, error) {
		return tracepoint{}, fmt.Errorf("the kernel does not describe its tracepoint %s: %w", name, err)
	}
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return failed(err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return failed(err)
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return failed(err)
	}
	defer unix.Close(root)
	fd, err := unix.Openat(root, "events/"+group+"/"+name+"/format", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1<<16))
	if err != nil {
		return failed(err)
	}
	id := regexp.MustCompile(`(?m)^ID: (\d+)$`).FindSubmatch(text)
	at := regexp.MustCompile(`\b` + field + `;\s+offset:(\d+);\s+size:4;`).FindSubmatch(text)
	if id == nil || at == nil {
		return failed(fmt.Errorf("it says %q", text))
	}
	var t tracepoint
	if t.id, err = strconv.ParseUint(string(id[1]), 10, 32); err != nil {
		return failed(err)
	}
	offset, err := strconv.ParseInt(string(at[1]), 10, 16)
	if err != nil {
		return failed(err)
	}
	t.offset = int16(offset)
	return t, nil
}
