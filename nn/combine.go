package nn

// Combine is the arithmetic of layers that combine the results of others.
type Combine interface {
	// Add sets y = a + b.
	Add(y, a, b Buffer)
	// Insert sets the columns of y from column at to the rows of x, which have part
	// elements. Rows of y have the given width. The other columns do not change. y is not
	// x.
	Insert(y, x Buffer, width, at, part int)
	// Extract sets the rows of x, which have part elements, to the columns of y from
	// column at. It is the inverse of Insert.
	Extract(x, y Buffer, width, at, part int)
}
