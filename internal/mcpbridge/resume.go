// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// lostText returns the client's error for a call that may have been carried out.
func lostText(err error) error {
	return fmt.Errorf("the connection to the server was lost while the call was in progress; it may have been carried out, so look before you repeat it: %w", err)
}

// resume asks for the rest of an answer whose stream broke, if the server numbers its events,
// until it has come. It returns an error if it will not come: the server is gone for longer than
// the bridge waits, or no longer knows the stream.
func (b *bridge) resume(ctx context.Context, x *attempt) error {
	began, pause := time.Now(), firstPause
	for {
		before := x.event
		err := x.again(ctx)
		switch {
		case err == nil:
			b.log.Info("the answer came by another connection")
			return nil
		case !errors.Is(err, errLost):
			return err
		case x.event != before:
			began, pause = time.Now(), firstPause
		case time.Since(began) > b.patience:
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause = min(2*pause, longPause)
	}
}

// again is one try of that. errLost: another may help.
func (x *attempt) again(ctx context.Context) error {
	req, err := x.b.request(ctx, http.MethodGet, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", x.event)
	x.session.set(req.Header)
	resp, err := x.b.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusConflict || resp.StatusCode == http.StatusServiceUnavailable:
		// The server has not heard yet that the connection broke, or starts.
		return fmt.Errorf("%w: %s", errLost, resp.Status)
	case resp.StatusCode != http.StatusOK || media != "text/event-stream":
		return fmt.Errorf("the server does not know the answer's stream any more (%s)", resp.Status)
	}
	err = events(resp.Body, x.b.most, x.take)
	if x.answered {
		return nil
	}
	if errors.Is(err, errLong) {
		return err
	}
	return fmt.Errorf("%w again (%v)", errLost, err)
}
