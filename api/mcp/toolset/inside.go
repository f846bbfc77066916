// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/api/service"
)

// InsideMark stands in instructions and descriptions for what the default image has.
const InsideMark = "{inside}"

// Inside returns what takes the place of [InsideMark]: " (inside: git 2.39.5, …; not inside:
// docker, …)" as it was read from the default image, or "" where that is not built yet or not the
// caller's to see.
func Inside(ctx context.Context, images service.Images, c access.Caller) string {
	all, err := images.Images(ctx, c)
	if err != nil || len(all) == 0 { // the default one is the first
		return ""
	}
	text := VersionsText(all[0].Image.Versions)
	if absent := all[0].Image.Absent; text != "" && len(absent) > 0 {
		text += "; not inside: " + strings.Join(absent, ", ")
	}
	if text == "" {
		return ""
	}
	return " (inside: " + text + ")"
}

// VersionsText lists tools with their versions, by name.
func VersionsText(versions map[string]string) string {
	list := make([]string, 0, len(versions))
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		list = append(list, name+" "+versions[name])
	}
	return strings.Join(list, ", ")
}
