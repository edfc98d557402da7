package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// DataServers are servers that copy the data of ephemeral disks between nodes.
type DataServers interface {
	Servers
	// Data requests the data for an allocation of the node, from a position. The stream is nil if there is none, and
	// the answer then has the reason. Otherwise the answer only names the source. The caller closes the stream.
	Data(ctx context.Context, alloc cluster.AllocID, folders []string, from datacopy.Position) (stream io.ReadCloser, answer client.DataAnswer)
}

const (
	// dataAnswerTimeout is how long a server may take to answer a request for data. Servers wait up to five
	// minutes until the data can be sent.
	dataAnswerTimeout = 6 * time.Minute
	// dataProgressInterval is the time between two reports of progress to the core, and dataStall is how long
	// nothing may arrive before the stream counts as cut.
	dataProgressInterval = time.Second
	dataStall            = 25 * time.Second
)

var (
	errDataStalled = fmt.Errorf("nothing has arrived for %s", dataStall)
	errDataSilent  = errors.New("the server does not answer the request for data")
)

// data receives the data of ephemeral disks, one copy at a time.
type data struct {
	servers DataServers // or nil
	tasks   *tasks
	turn    *sharedTurns
	logger  *slog.Logger

	mu     sync.Mutex
	copies map[cluster.AllocID]*dataCopy // guarded by mu
}

// dataCopy is what has arrived for one allocation. One call at a time uses it.
type dataCopy struct {
	// ctx ends when the copy is dropped.
	ctx  context.Context
	end  context.CancelCauseFunc
	busy sync.Mutex // held by the call
	// into and receiver are nil before the first stream, and after the end. Guarded by busy.
	into     *os.Root
	receiver *datacopy.Receiver
}

func newData(servers Servers, t *tasks, logger *slog.Logger) *data {
	d := &data{tasks: t, turn: newSharedTurns(1), logger: logger, copies: make(map[cluster.AllocID]*dataCopy)}
	d.servers, _ = servers.(DataServers)
	return d
}

// begin returns the copy for an allocation.
func (d *data) begin(life context.Context, alloc cluster.AllocID) *dataCopy {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.copies[alloc]
	if c == nil {
		c = new(dataCopy)
		c.ctx, c.end = context.WithCancelCause(life)
		d.copies[alloc] = c
	}
	return c
}

// take removes the copy for an allocation, and returns it or nil.
func (d *data) take(alloc cluster.AllocID) *dataCopy {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.copies[alloc]
	delete(d.copies, alloc)
	return c
}

// copy makes one request for the data of an allocation, and receives what the servers send.
func (d *data) copy(life context.Context, alloc *cluster.Allocation, progress func(client.DataProgress)) client.DataAnswer {
	if d.servers == nil {
		return client.DataAnswer{Result: client.DataRefused, Why: "the servers do not move data"}
	}
	c := d.begin(life, alloc.ID)
	c.busy.Lock()
	defer c.busy.Unlock()
	tasks := d.tasks.tasksOf(alloc)
	folders := allocdir.DataFolders(tasks)
	var from datacopy.Position
	if c.receiver != nil {
		from = c.receiver.Progress().At
	}
	stream, answer := d.request(c.ctx, alloc.ID, folders, from)
	if stream == nil {
		return answer
	}
	if d.turn.try() {
		defer d.turn.leave()
	} else {
		// The other copy may take long, and servers count this one while its stream is open.
		_ = stream.Close()
		if err := d.turn.take(c.ctx, cluster.JobKey{}); err != nil {
			return client.DataAnswer{Result: client.DataFailed, Why: err.Error()}
		}
		defer d.turn.leave()
		if stream, answer = d.request(c.ctx, alloc.ID, folders, from); stream == nil {
			return answer
		}
	}
	defer stream.Close()
	if err := d.open(c, alloc, tasks); err != nil {
		return answerOf(answer, err)
	}
	err := d.receive(c, stream, answer.Source, progress)
	p := c.receiver.Progress()
	answer.Bytes, answer.Entries, answer.Skipped = p.Bytes, p.Entries, p.Skipped
	if err == nil {
		d.take(alloc.ID)
		err = c.close()
	}
	return answerOf(answer, err)
}

// answerOf completes an answer about a stream.
func answerOf(answer client.DataAnswer, err error) client.DataAnswer {
	switch {
	case err == nil:
		answer.Result = client.DataArrived
		return answer
	case errors.Is(err, datacopy.ErrTooLarge), errors.Is(err, datacopy.ErrInvalid):
		answer.Result = client.DataRefused
	case errors.Is(err, datacopy.ErrNoRoom), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		answer.Result = client.DataNoRoom
	default:
		answer.Result = client.DataFailed
	}
	answer.Why = err.Error()
	return answer
}

// request sends a request, and bounds the time until the answer begins. The stream ends with the context.
func (d *data) request(ctx context.Context, alloc cluster.AllocID, folders []string, from datacopy.Position) (io.ReadCloser, client.DataAnswer) {
	ctx, end := context.WithCancelCause(ctx)
	late := time.AfterFunc(dataAnswerTimeout, func() { end(errDataSilent) })
	stream, answer := d.servers.Data(ctx, alloc, folders, from)
	late.Stop()
	if stream == nil {
		end(nil)
		return nil, answer
	}
	return &dataStream{stream, end}, answer
}

// dataStream is a stream with a context that ends with it.
type dataStream struct {
	io.ReadCloser
	end context.CancelCauseFunc
}

// Close ends the request.
func (s *dataStream) Close() error {
	s.end(nil)
	return s.ReadCloser.Close()
}

// open makes the folder for what arrives, unless the copy has one.
func (d *data) open(c *dataCopy, alloc *cluster.Allocation, tasks []allocdir.Task) error {
	if c.receiver != nil {
		return nil
	}
	owners, err := allocdir.OwnersOf(tasks)
	if err != nil {
		return err
	}
	into, err := d.tasks.dirs.MakeIncoming(c.ctx, string(alloc.ID))
	if err != nil {
		return err
	}
	o := datacopy.Options{Into: into, Folders: allocdir.DataFolders(tasks), Owner: owners.Of}
	if group := groupOf(alloc); group != nil {
		o.MaxBytes = group.EphemeralDisk.SizeMB << 20
	}
	receiver, err := datacopy.NewReceiver(o)
	if err != nil {
		return errors.Join(err, into.Close())
	}
	c.into, c.receiver = into, receiver
	return nil
}

// receive receives a stream, and cuts it when nothing arrives.
func (d *data) receive(c *dataCopy, stream io.ReadCloser, source cluster.AllocID, progress func(client.DataProgress)) error {
	report := func(p datacopy.Progress) {
		progress(client.DataProgress{Source: source, Bytes: p.Bytes, Entries: p.Entries, Skipped: p.Skipped})
	}
	ctx, end := context.WithCancelCause(c.ctx)
	last := c.receiver.Progress()
	report(last)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(dataProgressInterval)
		defer tick.Stop()
		for since := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			switch now := c.receiver.Progress(); {
			case now != last:
				last, since = now, time.Now()
				report(now)
			case time.Since(since) >= dataStall:
				end(errDataStalled)
				_ = stream.Close() // a read of it ends
				return
			}
		}
	})
	err := c.receiver.Receive(ctx, stream)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	end(nil)
	watching.Wait()
	return err
}

// close closes the files of a copy. What has arrived stays.
func (c *dataCopy) close() error {
	if c.receiver == nil {
		return nil
	}
	err := errors.Join(c.receiver.Close(), c.into.Close())
	c.receiver, c.into = nil, nil
	return err
}

var errDataDropped = errors.New("the client ends the copy")

// drop ends a copy, and removes what has arrived.
func (d *data) drop(life context.Context, alloc cluster.AllocID) error {
	var closed error
	if c := d.take(alloc); c != nil {
		c.end(errDataDropped)
		c.busy.Lock()
		defer c.busy.Unlock()
		closed = c.close()
	}
	return errors.Join(closed, d.tasks.dirs.RemoveIncoming(life, string(alloc)))
}

// place moves data into the folders of an allocation.
func (d *data) place(life context.Context, alloc *cluster.Allocation, from cluster.AllocID) error {
	folders := allocdir.DataFolders(d.tasks.tasksOf(alloc))
	if from == "" {
		return d.tasks.dirs.PlaceIncoming(life, string(alloc.ID), folders)
	}
	return d.tasks.dirs.MoveData(string(from), string(alloc.ID), folders)
}

// closeAll closes the files of all copies, at the end of the client.
func (d *data) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.copies {
		c.end(errDataDropped)
		if err := c.close(); err != nil {
			d.logger.Warn("files of data that arrived could not be closed", "error", err)
		}
	}
	clear(d.copies)
}

// removeIncoming removes what an earlier client has received, unless its record states that it is complete.
func removeIncoming(ctx context.Context, dirs *allocdir.Folders, records []*client.Record) error {
	var errs []error
	for _, r := range records {
		if in := r.DataIn; in == nil || in.State == client.DataInReceived && !r.Ended {
			continue
		}
		errs = append(errs, dirs.RemoveIncoming(ctx, string(r.Alloc.ID)))
	}
	return errors.Join(errs...)
}
