// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/terminal"
)

// orders are what sandboxes are sorted by, the most first.
var orders = map[string]func(*v1.StatsSample) float64{
	"cpu":       func(s *v1.StatsSample) float64 { return value(s.CPUs) },
	"memory":    func(s *v1.StatsSample) float64 { return value(s.MemoryBytes) },
	"disk":      func(s *v1.StatsSample) float64 { return value(s.DiskBytes) },
	"network":   func(s *v1.StatsSample) float64 { return value(s.NetworkInRate) + value(s.NetworkOutRate) },
	"processes": func(s *v1.StatsSample) float64 { return value(s.Tasks) },
}

func value[N int64 | float64](n *N) float64 {
	if n == nil {
		return -1
	}
	return float64(*n)
}

// NewTop returns the command that shows which sandboxes use most.
func NewTop(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "top [flags]",
		Short: "Show which sandboxes use most, again and again",
		Long: `Show which of the project's sandboxes use most, at a terminal again every two seconds, until Ctrl-C. Elsewhere, and with --once,
it is shown once. With the server's own administrator's token the host is shown, too. Looking is no use of a sandbox.`,
		Example: `  sandpit top --sort memory
  sandpit top --once --all-projects`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 { // as Docker has it
				return exit.Misuse(c, "it shows what all sandboxes use; sandpit ps %s lists the processes of one", output.Printable(args[0]))
			}
			return a.Takes(0, 0)(c, args)
		},
	}
	once := c.Flags().Bool("once", false, "show it once")
	sort := c.Flags().String("sort", "cpu", "the most first of cpu, memory, disk, processes or network")
	all := c.Flags().Bool("all-projects", false, "those of all projects; for the server's own administrator's token")
	_ = c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"cpu", "memory", "disk", "processes", "network"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		by, ok := orders[*sort]
		if !ok {
			return exit.Misuse(c, "--sort is %q: it is cpu, memory, disk or processes", *sort)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		q := client.StatsQuery{AllProjects: *all}
		screen, ok := terminal.Of(a.Out)
		if !ok || *once {
			l, err := cl.AllStats(c.Context(), q)
			if err != nil {
				return err
			}
			return writeTop(a.Out, l, *all, by, 0, 0)
		}
		// The other screen, without a cursor; what was there comes back at the end.
		fmt.Fprint(screen, "\x1b[?1049h\x1b[?25l")
		defer fmt.Fprint(screen, "\x1b[?25h\x1b[?1049l")
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, cl.FollowAllStats(ctx, q, func(l *v1.StatsList) error {
			cols, rows := terminal.Size(screen)
			var page bytes.Buffer
			if err := writeTop(&page, l, *all, by, cols, rows-1); err != nil {
				return err
			}
			_, err := io.WriteString(screen, redraw(page.String(), cols))
			return err
		}))
	}
	return c
}

// redraw writes lines over those before and clears the rest of each: an empty screen in between would flicker. One that is longer than
// the screen is wide is cut, since it would take two.
func redraw(page string, columns int) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for line := range strings.Lines(page) {
		text := []rune(strings.TrimSuffix(line, "\n"))
		b.WriteString(string(text[:min(len(text), columns)]))
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// writeTop writes a page of at most so many columns and lines; zero: as many as there are.
func writeTop(w io.Writer, l *v1.StatsList, projects bool, by func(*v1.StatsSample) float64, columns, lines int) error {
	var head [][]string
	if h := l.Host; h != nil {
		host := v1.SandboxStats{CPULimit: float64(h.CPULimit), MemoryLimit: h.MemoryLimit, DiskLimit: h.DiskLimit, TaskLimit: int(h.TaskLimit), Now: &h.Now}
		head = append(head, append([]string{"host"}, Cells(&host)...))
	}
	head = append(head, append([]string{sandboxes(l.Total.Sandboxes)}, sumCells(&l.Total)...))
	if err := output.TableWithin(w, append([]string{"TOGETHER"}, Heads()...), head, columns); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	items := slices.Clone(l.Items)
	slices.SortStableFunc(items, func(a, b v1.SandboxStats) int {
		return cmp.Compare(amount(b.Now, by), amount(a.Now, by))
	})
	if most := lines - len(head) - 3; lines > 0 && len(items) > max(most, 0) {
		items = items[:max(most, 0)]
	}
	first := []string{"NAME", "STATUS"}
	if projects {
		first = append(first, "PROJECT")
	}
	rows := make([][]string, 0, len(items))
	for _, s := range items {
		row := []string{nameOf(&s), s.Status}
		if projects {
			row = append(row, s.Project)
		}
		rows = append(rows, append(row, Cells(&s)...))
	}
	return output.TableWithin(w, append(first, Heads()...), rows, columns)
}

// amount is that of a sample; less than any where there is none.
func amount(s *v1.StatsSample, by func(*v1.StatsSample) float64) float64 {
	if s == nil {
		return -2
	}
	return by(s)
}

func sumCells(t *v1.StatsTotal) []string {
	row := []string{"-", "-", "-", "-", perSecond(t.NetworkInRate), perSecond(t.NetworkOutRate)}
	if t.CPUs != nil {
		row[0] = fmt.Sprintf("%.2f", *t.CPUs)
	}
	for n, b := range []*int64{t.MemoryBytes, t.DiskBytes} {
		if b != nil {
			row[n+1] = output.Bytes(*b)
		}
	}
	if t.Tasks != nil {
		row[3] = fmt.Sprint(*t.Tasks)
	}
	return row
}

func sandboxes(n int) string {
	if n == 1 {
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", n)
}
