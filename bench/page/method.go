// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"sandpit.dev/bench"
)

// peerText is what readers have to know of a peer before they compare.
type peerText struct {
	label string // plain text
	timed string // what is timed, Markdown
	light string // what it has not, or has more, than sandpit; Markdown
}

// peerTexts has each of bench.Peers, which a test holds.
func peerTexts() map[string]peerText {
	const bundle = "from the start of its process to its end, on an overlay over sandpit's own image; the overlay is mounted and config.json written before. " +
		"sandpit's default limits. A further command is `exec` in a container that stays."
	const oci = "No user namespace, no seccomp filter, no daemon, no authentication, no record."
	return map[string]peerText{
		"sandpit": {
			"sandpit", "`POST /v1/exec`, over HTTP on the loopback, until the answer has been read; by two requests it is `POST /v1/sandboxes`, then `POST …/exec`. The delete comes after. " +
				"A further command is `POST …/exec`.", "",
		},
		"bwrap": {
			"bubblewrap", "`bwrap` from the start of its process to its end, in all namespaces that it knows, on an overlay over sandpit's own image that is mounted before.",
			"No limits, no seccomp filter, nothing that stays for a further command, no daemon, no authentication, no record.",
		},
		"crun": {"crun run", "`crun run`, " + bundle, oci},
		"runc": {"runc run", "`runc run`, " + bundle, oci},
		"runsc": {
			"gVisor (runsc run)", "`runsc run` on the platform systrap, " + bundle,
			"A kernel of its own between command and host, which sandpit's native runtime has not; no daemon, no authentication, no record.",
		},
		"docker": {
			"Docker, Engine API", "Five requests to the Engine's socket, one after the other: create a container whose own process only waits, start it, create an exec of `/bin/true`, " +
				"start it and read to its end, ask how it ended. A further command is the last three. Removing the container comes after. The Engine is started for the run " +
				"in namespaces of its own; its image is sandpit's own root. No network, sandpit's default limits, else as it comes.",
			"No authentication, no user namespace, no record of commands.",
		},
		"docker_cli": {
			"Docker, docker run", "`docker run --rm` from the start of its process to its end, which is when the container is removed, on the same Engine. A further command is `docker exec`.",
			"No authentication, no user namespace, no record of commands.",
		},
		"sandpit_docker": {
			"sandpit on Docker", "As sandpit, with `\"runtime\": \"docker\"`: a server of its own, whose sandboxes are containers of the same Engine.",
			"No user namespace, as the peer Docker.",
		},
		"host": {
			"host process", "`/bin/true` of the host by fork and exec, and waited for: no sandbox at all, and the floor for whatever starts a process. A further command is the same.",
			"No isolation of any kind.",
		},
	}
}

// label is a peer's name as people write it.
func label(name string) string {
	if t, ok := peerTexts()[name]; ok {
		return t.label
	}
	return name
}

// lighter says what a peer leaves out.
func lighter(name string) string {
	if t := peerTexts()[name]; t.light != "" {
		return " " + t.light
	}
	return ""
}

// method says how all was measured, and how to do it again.
func method(b *strings.Builder, r *bench.Report) {
	b.WriteString("## Method\n\n")
	fmt.Fprintf(b, "The benchmark starts a server of its own on a private data directory and a loopback port, with authentication on and every command recorded, "+
		"and speaks to it as any client does: over HTTP, through the public API. Peers run on the same machine in the same run: %s rounds, in each of which everybody "+
		"has a turn, in an order that changes from round to round; five rounds before them do not count. So what else the machine does meets all alike, and a ratio is "+
		"taken in each round and its median is printed. p50, p95 and p99 are nearest-rank quantiles of the runs that worked; how many did is printed beside them. "+
		"Nothing is left out as an outlier. In a quick run (`--quick`) a slow peer sits out rounds once it has had its share of the time.\n\n", count(r.Pairs))
	b.WriteString("What is timed to the first command, which is `/bin/true` everywhere:\n\n")
	t := table{head: []string{"who", "what is timed"}}
	texts := peerTexts()
	for _, name := range append([]string{"sandpit"}, bench.Peers()...) {
		what := texts[name].timed
		if texts[name].light != "" {
			what += " " + texts[name].light
		}
		t.add(plain(label(name)), what)
	}
	b.WriteString(leftAligned(t.String()))
	b.WriteString("## Do it again\n\n<!-- not run: it measures for an hour -->\n```sh\nmake bin/sandpit-bench\nsudo bin/sandpit bench --fetch --report docs\n```\n\n" +
		"With `--million --sustain 300 --density 5000 --records 1000000` all marks are measured, which takes hours. " +
		"`--quick -o json` is the comparison alone, within a minute; `sandpit bench --help` has the rest.\n")
}

// leftAligned is for a table of words.
func leftAligned(t string) string { return strings.ReplaceAll(t, " ---: |", " --- |") }
