// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"

	"sandpit.dev/fault"
)

// The protocol of a forwarded port over a WebSocket: each message begins with the number of a channel, and each channel with the
// port in two bytes, little endian. Channel 0 has the data, and channel 1 what went wrong.
const (
	forwardProtocol = "v4.channel.k8s.io"
	dataChannel     = 0
	errorChannel    = 1
	maxMessage      = 1 << 20
)

// Forward connects to a port of a pod through the API server.
func (c *Client) Forward(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	path := Pods().path(namespace, pod, "portforward")
	ws, resp, err := websocket.Dial(ctx, c.url(path, url.Values{"ports": {strconv.Itoa(port)}}), &websocket.DialOptions{HTTPClient: c.http, Subprotocols: []string{forwardProtocol}})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != nil {
			return nil, c.refusal(http.MethodGet, path, resp)
		}
		return nil, fault.Wrap(fault.Unavailable, err, "the API server at %s forwards no port of pod %s", c.base.Host, pod)
	}
	ws.SetReadLimit(maxMessage)
	near, far := net.Pipe()
	running, stop := context.WithCancel(context.Background())
	f := &forwarded{ws: ws, far: far, running: running}
	// Each direction ends the other, and both end with the connection that is returned.
	go func() {
		defer stop()
		f.send()
	}()
	go func() {
		defer func() { _ = far.Close() }()
		f.receive()
	}()
	return near, nil
}

// forwarded carries one connection over the channels of a WebSocket.
type forwarded struct {
	ws      *websocket.Conn
	far     net.Conn
	running context.Context
}

// send carries what is written, until the connection is closed.
func (f *forwarded) send() {
	defer func() { _ = f.ws.CloseNow() }()
	b := make([]byte, 1+32<<10)
	b[0] = dataChannel
	for {
		n, err := f.far.Read(b[1:])
		if err != nil || f.ws.Write(f.running, websocket.MessageBinary, b[:1+n]) != nil {
			return
		}
	}
}

// receive carries what comes, until the other side ends it or tells of an error.
func (f *forwarded) receive() {
	var named [2]bool // the channel has said its port
	for {
		_, b, err := f.ws.Read(f.running)
		if err != nil || len(b) == 0 || int(b[0]) >= len(named) {
			return
		}
		channel, data := b[0], b[1:]
		if !named[channel] {
			if len(data) < portBytes {
				return
			}
			named[channel], data = true, data[portBytes:]
		}
		if len(data) == 0 {
			continue
		}
		if channel == errorChannel {
			return
		}
		if _, err := f.far.Write(data); err != nil {
			return
		}
	}
}

// portBytes is how many the number of a port has.
const portBytes = 2
