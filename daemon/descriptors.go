// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// The files that a server opens: some 190 at rest, about 10 more for a sandbox that is being
// called, and 3 for one that is not.
const (
	restFiles    = 190
	sandboxFiles = 10
	// leastFiles is for one sandbox, its clients and what is made ahead.
	leastFiles = 512
	// maxUnproven is how many connections may be open that have shown no valid token.
	maxUnproven = 2048
)

// unprovenOf returns how many of them there may be if so many files can be open: clients that
// reach the port take at most a quarter of these, and some 17 KB of memory with each.
func unprovenOf(limit uint64) int { return int(min(maxUnproven, limit/4)) }

// checkDescriptors refuses to start if the limit of open files leaves no room for a sandbox:
// otherwise each call would fail with an error of its own. It returns the limit, which Go has
// raised to the hard one.
func checkDescriptors(log *slog.Logger) (limit uint64, err error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		log.Warn("the limit of open files is not known", "error", err)
		return leastFiles, nil
	}
	return r.Cur, judgeDescriptors(log, r.Cur)
}

func judgeDescriptors(log *slog.Logger, limit uint64) error {
	const remedy = "raise the limit: ulimit -Hn 1048576 as root, or LimitNOFILE=1048576 in the service"
	if limit < leastFiles {
		return fault.New(fault.Unavailable, "the server may have %d files open at a time, and needs %d at least: about %d at rest and %d for a sandbox",
			limit, leastFiles, restFiles, sandboxFiles).WithRemedy(remedy)
	}
	if limit < fewFiles {
		log.Warn("the server may have few files open at a time", "limit", limit, "recommended", fewFiles,
			"sandboxes", (limit-restFiles)/sandboxFiles, "remedy", remedy)
	}
	return nil
}
