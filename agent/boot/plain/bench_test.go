// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"io"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/sandbox"
)

// BenchmarkExec is a warm command by each way to the agent, alone, 64 at once, and beside a download that
// takes all that the way has.
func BenchmarkExec(b *testing.B) {
	for name, c := range map[string]plain.Config{
		"Socket":    {},
		"Handshake": {Key: handshake.NewKey()},
		"Stream":    {Key: handshake.NewKey(), Stdio: true},
	} {
		b.Run(name, func(b *testing.B) {
			c.UID, c.GID = 1000, 1000
			box := start(b, c, syscall.CLONE_NEWPID)
			command := func(b *testing.B) {
				if got := run(b, box.client, agent.Command{Argv: []string{"/bin/true"}}); got != "" {
					b.Errorf("got %q", got)
				}
			}
			b.Run("Alone", func(b *testing.B) {
				for b.Loop() {
					command(b)
				}
			})
			b.Run("64AtOnce", func(b *testing.B) {
				for b.Loop() {
					var all sync.WaitGroup
					for range 64 {
						all.Go(func() { command(b) })
					}
					all.Wait()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/command")
			})
			run(b, box.client, agent.Command{Shell: "truncate -s 1G /workspace/large"})
			download := func() (int64, error) {
				_, r, err := box.client.ReadFile(b.Context(), "/workspace/large", sandbox.ReadFileOptions{})
				if err != nil {
					return 0, err
				}
				defer r.Close()
				return io.Copy(io.Discard, r)
			}
			b.Run("Download", func(b *testing.B) {
				b.SetBytes(1 << 30)
				for b.Loop() {
					if n, err := download(); n != 1<<30 || err != nil {
						b.Fatal(n, err)
					}
				}
			})
			b.Run("BesideADownload", func(b *testing.B) {
				stop := make(chan struct{})
				var beside sync.WaitGroup
				beside.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if _, err := download(); err != nil {
							b.Error(err)
							return
						}
					}
				})
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					command(b)
					took = append(took, time.Since(began))
				}
				close(stop)
				beside.Wait()
				b.ReportMetric(float64(percentile(took, 95).Nanoseconds()), "p95-ns")
			})
		})
	}
}

// percentile sorts them.
func percentile(all []time.Duration, p int) time.Duration {
	slices.Sort(all)
	return all[len(all)*p/100]
}
