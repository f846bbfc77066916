// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

// onEngine is what sandboxes on an Engine cost, part by part.
func onEngine(r *bench.Report) string {
	d := r.OnDocker
	return engineStart(d.Start) + engineExecs(d.Execs) + engineStream(d.Stream) + engineDisks(d.Disks) + engineGate(d.Gate) + engineAlive(d.Alive) +
		engineCycles(d.Cycles) + engineInside(d.Inside)
}

// sideName is a side of a comparison as people write it.
func sideName(who string) string {
	switch who {
	case bench.Native:
		return "sandpit, native"
	case bench.Sockets:
		return "sandpit on Docker"
	case bench.Pooled:
		return "sandpit on Docker, from a pool"
	case bench.Streamed:
		return "sandpit on Docker, through the Engine"
	case bench.Plain:
		return "Docker, Engine API"
	case bench.Pods:
		return "sandpit on Kubernetes"
	case bench.PooledPods:
		return "sandpit on Kubernetes, from a pool"
	case bench.ForwardedPods:
		return "sandpit on Kubernetes, through the API server"
	case bench.BarePod:
		return "a pod that runs"
	case bench.ClaimedPod:
		return "a pod with a claim that runs"
	case bench.ExecutedPod:
		return "a pod, by the API's exec"
	}
	return plain(who)
}

// compared is a table of comparisons, each with the first side's name in its last column.
func compared(what string, name func(string) string, all ...bench.Compared) string {
	t := newTiming(what, false)
	t.head = append(t.head, "times as long, median of pairs (p25 to p75)")
	for _, c := range all {
		for i, side := range c.Sides {
			if side.Figures == nil {
				continue
			}
			t.add(plain(name(c.What))+", "+sideName(side.Who), side.Figures)
			than := ""
			switch {
			case side.Ratio != nil:
				than = spread(side.Ratio)
			case i == 0 && len(c.Sides) > 1:
				than = "1"
			}
			last := len(t.rows) - 1
			t.rows[last] = append(t.rows[last], than)
		}
	}
	return t.String()
}

func asItIs(s string) string { return s }

func engineStart(d *bench.DockerStart) string {
	if d == nil {
		return ""
	}
	t := newTiming("the agent", false)
	t.add("container started → first command, less a further command", d.Answers)
	return "### Create and first command\n\nThree in turn: the Engine's five requests, a create and its command by one request of sandpit's, and the same where the server has a pool. " +
		"A container has started when the Engine's own event says so, by the same clock.\n\n" + compared("to the first command", asItIs, d.First, d.Started) + t.String() +
		"What a first command takes beyond a further one is more than what the agent takes until it answers.\n\n"
}

func engineExecs(d *bench.DockerExecs) string {
	if d == nil {
		return ""
	}
	held := table{head: []string{fmt.Sprintf("the Engine, before and after %s commands in a row", count(d.InARow)), "MB (RSS)", "after", "descriptors", "after"}}
	for _, one := range []struct {
		whose string
		h     bench.Held
	}{{"of a sandbox", d.Ours}, {"of its own in a container", d.Theirs}} {
		held.add(one.whose, plot.Number(one.h.MemoryBefore), plot.Number(one.h.MemoryAfter), count(one.h.DescriptorsBefore), count(one.h.DescriptorsAfter))
	}
	return "### Further commands\n\n" + compared("a further command", asItIs, d.Warm) + held.String() +
		"The Engine is its processes, containerd's shims included, without what runs in containers.\n\n"
}

func engineStream(d *bench.DockerStream) string {
	if d == nil {
		return ""
	}
	t := newTiming("over one stream of the Engine's", false)
	added := table{head: []string{"beside each other", "added to the p95, ms"}}
	download := fmt.Sprintf("a download of %s MiB", count(d.FileMiB))
	for _, one := range []struct {
		what, other string
		b           bench.Beside
	}{
		{"a command", download, d.OneBeside}, {fmt.Sprintf("one of %s commands at once", count(d.Calls)), download, d.ManyBeside}, {download, "those commands", d.Download},
	} {
		t.add(one.what+", nothing beside it", one.b.Quiet)
		t.add(one.what+" beside "+one.other, one.b.Beside)
		if one.b.Added != nil {
			added.add(one.what+" beside "+one.other, plus(*one.b.Added))
		}
	}
	return "### Through the Engine\n\nAgents that are reached through the Engine have one stream for all calls of a sandbox (`docker.stream: true`).\n\n" +
		compared("in turn", asItIs, d.Warm, d.AtOnce) + t.String() + added.String()
}

func engineDisks(d *bench.DockerDisks) string {
	if d == nil {
		return ""
	}
	var all []bench.Compared
	for _, size := range d.Sizes {
		all = append(all, verbsOf(size)...)
	}
	return "### Pauses, snapshots, rollbacks, forks\n\nOf the Engine itself a snapshot is a commit, and a fork a commit and a container of it that is started; it has nothing like a rollback.\n\n" +
		compared("a disk", asItIs, all...)
}

// verbsOf are what was done to a disk, in words for people.
func verbsOf(d bench.DockerDisk) []bench.Compared {
	verbs := d.Verbs()
	for i := range verbs {
		verbs[i].What = withFiles(verbs[i].What, d.Files)
	}
	return verbs
}

// withFiles writes a number in words that have it as people write it.
func withFiles(what string, files int) string {
	return strings.Replace(what, fmt.Sprintf("%d files", files), count(files)+" files", 1)
}

func engineGate(d *bench.DockerGate) string {
	if d == nil {
		return ""
	}
	speeds := table{head: []string{"speed of the median run", "download, Gbit/s", "upload, Gbit/s"}}
	for _, who := range []string{bench.Native, bench.Sockets, bench.Streamed} {
		down, up := d.GbitPerSecond(d.Down, who), d.GbitPerSecond(d.Up, who)
		if down != nil && up != nil {
			speeds.add(sideName(who), plot.Number(*down), plot.Number(*up))
		}
	}
	return fmt.Sprintf("### The gate\n\n%s MiB over one connection to a server on this host, timed inside. From outside the server enters the container's network; through the Engine the agent carries.\n\n", count(d.MiB)) +
		speeds.String() + compared("through the gate", asItIs, d.Down, d.Up)
}

func engineAlive(d *bench.DockerAlive) string {
	if d == nil {
		return ""
	}
	t := newTiming(fmt.Sprintf("%s alive at once", count(d.Alive)), false)
	t.add(fmt.Sprintf("create → first command, %d at a time", bench.MadeAtATime), d.Create)
	t.add("command in one of them", d.Exec)
	t.add("command in each of them, all at once", d.AtOnce)
	w := table{head: []string{"each, MB", "the host's available memory fell by", "the Engine's processes have more (RSS)", "the server has more (PSS)"}}
	w.add("sandboxes that ran commands", plot.Number(d.Ours.Available), plot.Number(d.Ours.Engine), plot.Number(d.Server))
	w.add("containers that only wait", plot.Number(d.Theirs.Available), plot.Number(d.Theirs.Engine), "–")
	return fmt.Sprintf("### Many that are alive\n\n%s of %s that were asked for.\n\n", count(d.Alive), count(d.Asked)) + t.String() + w.String()
}

func engineCycles(d *bench.DockerCycles) string {
	if d == nil {
		return ""
	}
	var left strings.Builder
	t := newTiming("create, command, delete, several at a time", false)
	held := table{head: []string{"lives", "a second", "the Engine's MB (RSS)", "after", "descriptors", "after"}}
	for _, c := range d.Ways {
		who := sideName(c.Who)
		t.add(who, c.Life)
		held.add(who, plot.Number(c.PerSecond), plot.Number(c.Engine.MemoryBefore), plot.Number(c.Engine.MemoryAfter), count(c.Engine.DescriptorsBefore), count(c.Engine.DescriptorsAfter))
		if len(c.Left) == 0 {
			fmt.Fprintf(&left, "They left nothing, %s: no container, image or volume of the Engine, and of the server no process, mount, cgroup, namespace, socket, descriptor, directory or goroutine.\n\n", who)
			continue
		}
		fmt.Fprintf(&left, "**They left %s, %s:**\n\n", things(len(c.Left)), who)
		for _, thing := range c.Left {
			left.WriteString("- " + plain(thing) + "\n")
		}
		left.WriteString("\n")
	}
	return "### Lives\n\n" + t.String() + held.String() + left.String()
}

func engineInside(d *bench.DockerInside) string {
	if d == nil {
		return ""
	}
	store := "in a directory of the data"
	if d.Store != "" {
		store = "on " + plain(d.Store)
	}
	lacks := ""
	if len(d.Lacks) > 0 {
		kinds := make([]string, len(d.Lacks))
		for i, kind := range d.Lacks {
			kinds[i] = plain(workText(kind))
		}
		lacks = "The image lacks what these need: " + join(kinds) + ".\n\n"
	}
	return fmt.Sprintf("### Work inside\n\nThe work of the section above, in turn with a plain container of the same Engine, all on one disk. The data of server and Engine lie on %s, the native runtime's layers %s. %s rounds.\n\n",
		plain(d.DataFS), store, count(d.Rounds)) + lacks + compared("work", workText, d.Work...)
}
