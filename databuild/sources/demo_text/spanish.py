"""Spanish topics."""

from __future__ import annotations

from databuild.sources.demo_text.languages import language

POOLS = """
first: Lucía, Mateo, Carmen, Diego, Elena, Pablo, Marta, Andrés, Sofía, Javier, Clara, Tomás, Irene, Raúl, Nuria,
  Bruno
city: Sevilla, Granada, Bilbao, Lima, Quito, Córdoba, Valencia, Montevideo, Rosario, Cuenca, Oaxaca, Salamanca, Cádiz
thing: cuadernos, lápices, vasos, platos, libros, sobres, tornillos, cojines, pinceles, globos, faroles, limones
object: un reloj antiguo, una llave de plata, un paraguas rojo, una caja de música, un mapa roto, una guitarra vieja,
  una brújula, un barco de papel, una carta sin firma
animal: un gato gris, una cigüeña, un perro viejo, una tortuga, un burro, una lechuza, un zorro, una golondrina
place: la estación, la muralla, la fuente, la biblioteca, la iglesia vieja, la plaza mayor, la escuela, la estatua
dish: tortilla de patatas, sopa de lentejas, gazpacho, arroz con verduras, empanada de espinacas, pisto, ensalada de
  garbanzos
day: lunes, martes, miércoles, jueves, viernes, sábado, domingo
fact: la fotosíntesis=el proceso con el que las plantas fabrican azúcar a partir de luz, agua y dióxido de carbono |
  el arcoíris=luz del sol que las gotas de lluvia separan en colores | la inflación=la subida general de los
  precios con
  el paso del tiempo | un algoritmo=una lista exacta de pasos para resolver un tipo de problema | la marea=el
  movimiento
  regular del mar, causado sobre todo por la atracción de la luna | una metáfora=una figura que nombra una cosa con el
  nombre de otra | un eclipse de luna=el paso de la luna por la sombra de la tierra | un número primo=un número
  mayor que
  uno que solo se puede dividir entre uno y él mismo
pair: Where is the station?=¿Dónde está la estación? | I arrive on the {i_2_28}th of May.=Llego el {i_2_28} de mayo. |
  {first} lives in {city}.={first} vive en {city}. | The train leaves at {i_5_11}.=El tren sale a las {i_5_11}. |
  We need {i_5_40} chairs.=Necesitamos {i_5_40} sillas. | It is raining today.=Hoy llueve. | My room is number
  {i_100_900}.=Mi
  habitación es la número {i_100_900}. | Thank you for the letter.=Gracias por la carta.
good: El servicio en {city} fue excelente. | Todo llegó en {i_2_9} días y en perfecto estado. | {first} me atendió
  con mucha
  amabilidad. | Lo volvería a comprar sin dudarlo.
bad: Se rompió a los {i_2_20} días. | Esperé {i_30_90} minutos y nadie me atendió. | La tienda de {city} no
  responde. |
  Huele mal y costó {i_40_300} euros.
labels: positiva, negativa
"""

SCRIPT = """
@ shop shop
? {first} compra {n} {thing} a {p} euros cada uno y paga con {b} euros. ¿Cuánto le devuelven?
? En una tienda de {city} pido {n} {thing}; cada uno cuesta {p} euros. ¿Qué cambio recibo si entrego {b} euros?
= Primero calculamos el coste total: {n} × {p} = {t} euros. Después restamos: {b} - {t} = {c}. [El cambio es de|Le
  devuelven] **{c} euros**.
= [La cuenta es sencilla|Vamos por pasos]: {n} × {p} = {t} y {b} - {t} = {c}, así que el cambio es de {c} euros.
> ¿Y si solo compro uno?
< Entonces pagas {p} euros.
@ travel travel
? Un tren circula durante {h} horas a {v} km/h desde {city} y luego recorre {left} km más. ¿Qué distancia hace en
  total?
? {first} viaja {h} horas a una velocidad media de {v} km/h y después otros {left} kilómetros. ¿Cuántos son en total?
= En {h} horas se recorren {v} × {h} = {km} km. Con los {left} km restantes son {km} + {left} = **{all} km**.
@ area area
? Un jardín de {city} mide {a} metros de largo y {b} de ancho. ¿Cuáles son su superficie y su perímetro?
? {first} quiere vallar un terreno rectangular de {a} m por {b} m. Calcula el perímetro y el área.
= Área: {a} × {b} = {area} m². Perímetro: 2 × ({a} + {b}) = 2 × {sum} = {per} m.
@ fact fact
? ¿Qué es {term}? Explícalo en una frase para un niño de {i_6_12} años de {city}.
? {first} me ha preguntado en {city} qué es {term}. ¿Qué le respondo?
? Define brevemente {term} y sugiere a {first} cómo recordarlo en {i_2_9} días.
= [Se puede decir así|Una respuesta breve]: {term} es {what}. [Para recordarlo, conviene|Ayuda] dibujarlo y
  explicárselo a
  otra persona, por ejemplo a {first2}.
= En pocas palabras, {term} es {what}. [Después puedes|Luego conviene] buscar un ejemplo en {place}.
@ story
? Escribe un cuento corto con {animal} y {object}.
? Cuéntame una historia que pase en {city}, cerca de {place}, con {first} y {animal}.
= [Aquella noche|Una mañana de invierno|Hace {i_20_90} años], {first} encontró {object} cerca de {place}, en
  {city}. [Nadie
  sabía de quién era|Parecía esperar a alguien]. De pronto apareció {animal} y [se sentó a su lado|lo miró sin miedo].
  [Caminaron juntos|Siguieron el río] durante {i_2_9} horas. Al final, {first2} abrió la puerta y dijo: «[Por fin
  habéis
  llegado|Os estaba esperando]». [Desde entonces|Desde aquel día] cenan {dish} cada {day2}.
@ letter
? Escribe un correo a {first}: no puedo ir el {day} a {place} y propongo otra fecha.
? Necesito un mensaje amable para {first}, de {city}, para cambiar nuestra cita del {day}.
= Hola, {first}:¶¶[Lo siento mucho, pero|Me ha surgido un problema y] no puedo ir el {day}. ¿Te [viene bien|parece
  bien] el
  {day2} a las {i_5_11}, en {place}? [Si no, propón tú otra fecha|Si prefieres otro día, dímelo].¶¶[Un saludo|Un
  abrazo],
  ¶{first2}
@ recipe
? ¿Cómo se prepara {dish} para {i_2_9} personas?
? {first} quiere cocinar {dish} el {day}. ¿Qué pasos hay que seguir?
= 1. [Reúne|Prepara] los ingredientes de {dish} para {i_2_9} personas.¶2. [Lava y corta|Corta] las verduras en trozos
  pequeños.¶3. Cocina todo a fuego [lento|medio] durante {i_15_50} minutos.¶4. Añade sal, aceite y [un poco de
  limón|hierbas
  frescas].¶¶[Déjalo reposar {i_5_15} minutos|Sírvelo enseguida]. ¡Buen provecho!
@ review review
? ¿Es positiva o negativa esta reseña? «{review}» Responde con una palabra.
! [{label}|Es {label}.]
? Clasifica la opinión (positiva o negativa) y explica por qué: {review}
! Es {label}. Lo muestra sobre todo la frase «{text}».
@ translate pairs
? Traduce al español: {en}
? How do I say this in Spanish? {en}
= {own}
= [En español|In Spanish]: «{own}»
"""

TOPICS = language("es", POOLS, SCRIPT)
