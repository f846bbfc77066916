// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strconv"
)

// serverScore is the server's oom_score_adj(5): if the host runs out of memory, the server is
// killed after commands, agents and other programs of the host.
const serverScore = -500

// lowerScore sets the score of this process, unless it is lower. Without CAP_SYS_RESOURCE it
// stays as it is, and those of agents and commands are above it all the same.
func lowerScore(file string, log *slog.Logger) {
	text, err := os.ReadFile(file)
	if err == nil {
		var now int
		if now, err = strconv.Atoi(string(bytes.TrimSpace(text))); err == nil && now > serverScore {
			err = os.WriteFile(file, fmt.Append(nil, serverScore), 0)
		}
	}
	if err != nil {
		log.Info("the kernel's out-of-memory killer does not spare the server more than other programs of the host; its sandboxes it ends first", "error", err)
	}
}
