// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strconv"
	"strings"
)

// parseStatus reads the second porcelain format with -z. What is not in that format is left out; cut says
// that the text's end is missing.
func parseStatus(text string, cut bool) Status {
	st := Status{Truncated: cut}
	next := func() (string, bool) {
		item, rest, whole := strings.Cut(text, "\x00")
		text = rest
		return item, whole // else it is cut off
	}
	for {
		item, ok := next()
		if !ok {
			return st
		}
		kind, rest, _ := strings.Cut(item, " ")
		var f FileStatus
		switch kind {
		case "#":
			st.header(rest)
			continue
		case "1": // XY sub mH mI mW hH hI path
			f, ok = changedFile(rest, 7)
		case "2": // XY sub mH mI mW hH hI score path, and where it was
			if f, ok = changedFile(rest, 8); ok {
				var from string
				if from, ok = next(); !ok {
					st.Truncated = true
					return st
				}
				f.From = nameText(from)
			}
		case "u": // XY sub m1 m2 m3 mW h1 h2 h3 path
			f, ok = changedFile(rest, 9)
			f.Index, f.Worktree = Unmerged, Unmerged
		case "?":
			f = FileStatus{Path: nameText(strings.TrimSuffix(rest, "/")), Index: Untracked, Worktree: Untracked}
			ok = f.Path != ""
		default:
			continue
		}
		if !ok {
			continue
		}
		if len(st.Files) == maxList {
			st.Truncated = true
			return st
		}
		st.Files = append(st.Files, f)
	}
}

func (s *Status) header(text string) {
	name, value, _ := strings.Cut(text, " ")
	switch name {
	case "branch.oid":
		if fullID.MatchString(value) {
			s.Commit = value
		}
	case "branch.head":
		if value != "(detached)" {
			s.Branch = nameText(value)
		}
	case "branch.upstream":
		s.Upstream = nameText(value)
	case "branch.ab":
		ahead, behind, _ := strings.Cut(value, " ")
		a, errA := strconv.Atoi(strings.TrimPrefix(ahead, "+"))
		b, errB := strconv.Atoi(strings.TrimPrefix(behind, "-"))
		if errA == nil && errB == nil && a >= 0 && b >= 0 {
			s.Ahead, s.Behind, s.Published = a, b, true
		}
	}
}

// changedFile reads what stands before a path: XY, sub, and so many fields in all.
func changedFile(text string, fields int) (FileStatus, bool) {
	parts := strings.SplitN(text, " ", fields+1)
	if len(parts) != fields+1 || len(parts[0]) != 2 || parts[fields] == "" {
		return FileStatus{}, false
	}
	index, ok1 := stateOf(parts[0][0])
	worktree, ok2 := stateOf(parts[0][1])
	return FileStatus{Path: nameText(parts[fields]), Index: index, Worktree: worktree, Submodule: strings.HasPrefix(parts[1], "S")}, ok1 && ok2
}

func stateOf(letter byte) (FileState, bool) {
	switch letter {
	case '.':
		return Unmodified, true
	case 'M':
		return Modified, true
	case 'T':
		return TypeChanged, true
	case 'A':
		return Added, true
	case 'D':
		return Deleted, true
	case 'R':
		return Renamed, true
	case 'C':
		return Copied, true
	case 'U':
		return Unmerged, true
	}
	return "", false
}
