document.querySelector('#hello').textContent = `Hello from a page at ${location.pathname}`;
