package disks

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

// Servers copy the data of ephemeral disks between nodes.
type Servers interface {
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

// Options are what the disks of a node need.
type Options struct {
	// Servers may be nil: then no data comes from other nodes.
	Servers Servers
	Folders *allocdir.Folders
	// Tasks returns the tasks of an allocation with the users that own their folders.
	Tasks  func(*cluster.Allocation) []allocdir.Task
	Logger *slog.Logger
}

// Disks receive data, one copy at a time. They are safe for concurrent use.
type Disks struct {
	options Options
	// turn has a value while a copy runs.
	turn chan struct{}

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

// New returns disks into which nothing is copied.
func New(o Options) *Disks {
	return &Disks{options: o, turn: make(chan struct{}, 1), copies: make(map[cluster.AllocID]*dataCopy)}
}

// begin returns the copy for an allocation.
func (d *Disks) begin(life context.Context, alloc cluster.AllocID) *dataCopy {
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
func (d *Disks) take(alloc cluster.AllocID) *dataCopy {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.copies[alloc]
	delete(d.copies, alloc)
	return c
}

// Copy makes one request for the data of an allocation, and receives what the servers send.
func (d *Disks) Copy(life context.Context, alloc *cluster.Allocation, progress func(client.DataProgress)) client.DataAnswer {
	if d.options.Servers == nil {
		return client.DataAnswer{Result: client.DataRefused, Why: "the servers do not move data"}
	}
	c := d.begin(life, alloc.ID)
	c.busy.Lock()
	defer c.busy.Unlock()
	tasks := d.options.Tasks(alloc)
	folders := allocdir.DataFolders(tasks)
	var from datacopy.Position
	if c.receiver != nil {
		from = c.receiver.Progress().At
	}
	stream, answer := d.request(c.ctx, alloc.ID, folders, from)
	if stream == nil {
		return answer
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	default:
		// The other copy may take long, and servers count this one while its stream is open.
		_ = stream.Close()
		select {
		case d.turn <- struct{}{}:
			defer func() { <-d.turn }()
		case <-c.ctx.Done():
			return client.DataAnswer{Result: client.DataFailed, Why: context.Cause(c.ctx).Error()}
		}
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
	answer.Bytes, answer.Entries, answer.Skipped, answer.Mounts = p.Bytes, p.Entries, p.Skipped, p.Mounts
	if err == nil {
		d.take(alloc.ID)
		c.end(nil)
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
func (d *Disks) request(ctx context.Context, alloc cluster.AllocID, folders []string, from datacopy.Position) (io.ReadCloser, client.DataAnswer) {
	ctx, end := context.WithCancelCause(ctx)
	late := time.AfterFunc(dataAnswerTimeout, func() { end(errDataSilent) })
	stream, answer := d.options.Servers.Data(ctx, alloc, folders, from)
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
func (d *Disks) open(c *dataCopy, alloc *cluster.Allocation, tasks []allocdir.Task) error {
	if c.receiver != nil {
		return nil
	}
	owners, err := allocdir.OwnersOf(tasks)
	if err != nil {
		return err
	}
	into, err := d.options.Folders.MakeIncoming(c.ctx, string(alloc.ID))
	if err != nil {
		return err
	}
	o := datacopy.Options{Into: into, Folders: allocdir.DataFolders(tasks), Owner: owners.Of}
	if group := alloc.Job.Group(alloc.TaskGroup); group != nil {
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
func (d *Disks) receive(c *dataCopy, stream io.ReadCloser, source cluster.AllocID, progress func(client.DataProgress)) error {
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

// Drop ends a copy, and removes what has arrived.
func (d *Disks) Drop(life context.Context, alloc cluster.AllocID) error {
	var closed error
	if c := d.take(alloc); c != nil {
		c.end(errDataDropped)
		c.busy.Lock()
		defer c.busy.Unlock()
		closed = c.close()
	}
	return errors.Join(closed, d.options.Folders.RemoveIncoming(life, string(alloc)))
}

// Place moves data into the folders of an allocation.
func (d *Disks) Place(life context.Context, alloc *cluster.Allocation, from cluster.AllocID) error {
	folders := allocdir.DataFolders(d.options.Tasks(alloc))
	if from == "" {
		return d.options.Folders.PlaceIncoming(life, string(alloc.ID), folders)
	}
	return d.options.Folders.MoveData(string(from), string(alloc.ID), folders)
}

// Close closes the files of all copies, at the end of the client.
func (d *Disks) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.copies {
		c.end(errDataDropped)
		if err := c.close(); err != nil {
			d.options.Logger.Warn("files of data that arrived could not be closed", "error", err)
		}
	}
	clear(d.copies)
}

// RemoveIncoming removes what an earlier client has received, unless its record states that it is complete.
func RemoveIncoming(ctx context.Context, dirs *allocdir.Folders, records []*client.Record) error {
	var errs []error
	for _, r := range records {
		if in := r.DataIn; in == nil || in.State == client.DataInReceived && !r.Ended {
			continue
		}
		errs = append(errs, dirs.RemoveIncoming(ctx, string(r.Alloc.ID)))
	}
	return errors.Join(errs...)
}
