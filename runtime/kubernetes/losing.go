// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/sandbox"
)

// maxLostPath bounds a path that is told of what is lost.
const maxLostPath = 80

// losingPatience bounds how long a stop waits for an agent to say what is lost.
const losingPatience = time.Second

// noteLost has the stop that follows say what it loses. verb is held.
func (i *Instance) noteLost(ctx context.Context) {
	if _, err := i.life(); err != nil || i.keepsRoot {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, losingPatience)
	defer cancel()
	l, err := agent.NewClient(i.Dial).Lost(ctx)
	if err != nil { // the agent of an earlier server knows no such call
		i.d.log.Debug("a sandbox's agent does not say what a stop loses", "sandbox", i.id, "error", err)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.losing = losing(l)
}

// losing says what is lost; "": nothing was found.
func losing(l agent.Lost) string {
	if l.Entries == 0 {
		return ""
	}
	paths := make([]string, len(l.Some))
	for n, path := range l.Some {
		paths[n] = strconv.Quote(sandbox.Clip(path, maxLostPath))
	}
	least, what := "", "changes"
	if l.More {
		least = "at least "
	}
	if l.Entries == 1 {
		what = "change"
	}
	return fmt.Sprintf("%s%d %s outside of %s lost with it, as of %s", least, l.Entries, what, strings.Join(diskDirs(), ", "), strings.Join(paths, ", "))
}
