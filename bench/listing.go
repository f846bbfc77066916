// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	v1 "sandpit.dev/api/v1"
)

// listed is how many files the directory has that is listed: as many as one list may have.
const listed = 100_000

// listing times how long a list of a hundred thousand files takes, to its last byte, and the same with all about each.
func (o *ours) listing(ctx context.Context, s *server, n int, out *Transfer) error {
	return o.with(ctx, v1.CreateSandbox{DiskMB: new(4 << 10), MemoryMB: new(1 << 10)}, func(ref string) error {
		fill := fmt.Sprintf("mkdir many && cd many && seq -f file-%%06g.txt 1 %d | xargs touch", listed)
		if err := o.exec(ctx, ref, v1.Exec{Command: &fill, TimeoutSeconds: new(600.0)}); err != nil {
			return err
		}
		names, all := new(series), new(series)
		for i := range n + 1 {
			for _, side := range []struct {
				to    *series
				query string
			}{{names, ""}, {all, "&detail=true"}} {
				began := time.Now()
				entries, err := s.list(ctx, ref, "many", side.query)
				took := time.Since(began)
				if err == nil && side.to == names && entries != listed {
					err = fmt.Errorf("the list has %d entries of %d", entries, listed)
				}
				if err != nil {
					return err
				}
				if i > 0 { // the first one is a warm-up
					side.to.add(took, nil)
				}
			}
		}
		out.Listing, out.Details = names.figures(), all.figures()
		return nil
	})
}

// list lists a directory, and returns how many entries it has. It decodes nothing: that is the client's time.
func (s *server) list(ctx context.Context, ref, dir, query string) (entries int, err error) {
	at := fmt.Sprintf("%s/v1/sandboxes/%s/files?path=%s&limit=%d%s", s.url, url.PathEscape(ref), url.QueryEscape(dir), listed, query)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the list is answered with %s", resp.Status)
	}
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		piece, err := in.ReadSlice('}')
		if bytes.HasSuffix(piece, []byte{'}'}) {
			entries++
		}
		if err == io.EOF {
			return entries, nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return 0, err
		}
	}
}
