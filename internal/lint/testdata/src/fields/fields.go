// Package fields reads some fields of rows.
package fields

// Row is a row.
type Row struct {
	ID               string
	Inner            Inner
	Pointed          *Pointed
	Unread, Assigned int
	Spec
	Compared Compared
}

// Inner is in a row.
type Inner struct{ ReadByMethod, NotRead int }

func (i Inner) method() int { return i.ReadByMethod }

// Pointed is pointed to by a row.
type Pointed struct{ ReadByInterface, NotRead int }

// Spec is embedded in a row.
type Spec struct{ Promoted, NotRead int }

// Compared is compared as a whole.
type Compared struct{ A, B int }

// Reader reads.
type Reader interface{ Read(*Row) int }

type reader struct{}

func (reader) Read(r *Row) int { return r.Pointed.ReadByInterface }

// Other is in no row.
type Other struct{ Field int }

// Decide is the root.
func Decide(r *Row, with Reader, o Other) bool {
	r.Assigned = o.Field
	created := Row{Unread: 1}
	return r.ID != "" && r.Inner.method()+with.Read(r)+r.Promoted > 0 && r.Compared == created.Compared
}

// NotReached reads what no decision reads.
func NotReached(r *Row) int { return r.Unread + r.Inner.NotRead + r.Pointed.NotRead + r.NotRead }
