// Once to the end, and the button that brings more, where there is one. No link, and nothing within a form.
(() => {
    window.scrollTo(0, document.documentElement.scrollHeight);
    const words = /^\s*(load|show|view|see)\s+(\d+\s+)?more\b|^\s*more\s*(results|posts|articles|items)?\s*$|^\s*mehr\s+(laden|anzeigen)|^\s*(voir|afficher)\s+plus|^\s*(cargar|ver|mostrar)\s+m[aá]s|^\s*(carica|mostra)\s+altr|^\s*(carregar|ver)\s+mais|^\s*(na[cč][ií]st|zobrazit)\s+(dal[sš][ií]|v[ií]ce)|^\s*(показать|загрузить)\s+(ещ[её]|больше)|^\s*(mutass|t[oö]bb)/i;
    const buttons = document.querySelectorAll("button, [role=button], input[type=button]");
    for (const button of buttons)
        if (!button.disabled && !button.closest("form, a[href]") && words.test(button.value || button.textContent)) {
            button.click();
            return;
        }
})();
